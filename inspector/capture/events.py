"""Events into a Capture, and a Capture into events.

    hello        python                      the interpreter runs
    script       name + text                 the script's source
    subject      the fields of Subject       sent again whenever more of them is known
    progress     phase, since                what is being done from now on
    stage        name, seconds + text        jaxpr, stablehlo, sdy, hlo-before, hlo-spmd, hlo
    equations    + numbers                   which operation comes from which equation: see worker/equation_numbers.py
    arguments    values: of Value            outputs: the same
    memory       the fields of Memory        message, execution, failure: theirs
    peak         + text                      what is alive when most memory is taken
    probe        the fields of Probe + elements
    probed       the fields of Probed        differences  values: of Compared
    collective_times                         values: of Timing
    reference    the fields of Reference
    devices      wanted                      another number of fake devices is needed
    stdout       + text                      what the script printed; stderr: the same
    timings      seconds by phase            only in files
    capture      schema                      the first frame of a file
    end          since                       nothing more comes, all went well; failure has a `since`, too

An event of another name is passed over: a later version may have more of them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from ...parsers.source import Source
from .errors import CaptureError
from .model import STAGES, Capture, Execution, Failure, Memory, Message, Progress, Stage, Subject, Value
from .protocol.wire import SCHEMA, Frame
from .tags import plain, tagged, untagged
from .values import Compared, Probe, Probed, Reference, Timing

MOST_MESSAGES = 10_000
MOST_PROBES = 20_000
NUMBERS = 3 * array("I").itemsize
"""Bytes for an operation that comes from an equation."""

_T = TypeVar("_T")


def fold(capture: Capture, frame: Frame) -> Capture:
    """The capture with what one event adds.

    Raises:
        CaptureError: the event lacks something, or holds something else than it should.
    """
    name = frame.event.get("event")
    rule = _RULES.get(name) if isinstance(name, str) else None
    return rule(capture, frame) if rule else capture


def frames_of(capture: Capture) -> Iterator[Frame]:
    """The frames that `fold` makes this capture from."""
    yield Frame({"event": "capture", "schema": SCHEMA})
    if capture.script_text is not None:
        yield Frame({"event": "script", "name": capture.script_text.name}, capture.script_text.data)
    if capture.subject is not None:
        yield _event("subject", capture.subject)
    for stage in capture.stages:
        text = tagged(stage.source.data, stage.tags)
        yield Frame({"event": "stage", "name": stage.name, "seconds": stage.seconds}, text)
    if capture.equations:
        yield Frame({"event": "equations"}, capture.equations)
    yield Frame({"event": "arguments", "values": msgspec.to_builtins(capture.arguments)})
    yield Frame({"event": "outputs", "values": msgspec.to_builtins(capture.outputs)})
    once = ("memory", "execution", "probed", "reference")
    for name, value in ((name, getattr(capture, name)) for name in once):
        if value is not None:
            yield _event(name, value)
    for probe in capture.probes:
        yield Frame(_event("probe", replace(probe, elements=b"")).event, probe.elements)
    if capture.collective_times:
        yield Frame({"event": "collective_times", "values": msgspec.to_builtins(capture.collective_times)})
    if capture.compared:
        yield Frame({"event": "differences", "values": msgspec.to_builtins(capture.compared)})
    if capture.peak is not None:
        yield Frame({"event": "peak"}, capture.peak.data)
    for message in capture.messages:
        yield _event("message", message)
    yield Frame({"event": "stdout"}, capture.stdout.encode("utf-8", "replace"))
    yield Frame({"event": "stderr"}, capture.stderr.encode("utf-8", "replace"))
    yield Frame({"event": "timings", "seconds": capture.timings})
    if capture.failure is not None:
        yield _event("failure", capture.failure)
    if capture.complete:
        yield Frame({"event": "end"})


def _event(name: str, value: Any) -> Frame:
    return Frame({"event": name, **msgspec.to_builtins(value)})


def _convert(value: Any, kind: type[_T], frame: Frame) -> _T:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        raise CaptureError(f"a {frame.event['event']} event that is not one: {error}") from None


def _script(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, script_text=Source(_convert(frame.event.get("name"), str, frame), frame.text))


def _subject(capture: Capture, frame: Frame) -> Capture:
    subject = _convert(frame.event, Subject, frame)
    for mesh in subject.meshes:
        if any(axis.size < 1 for axis in mesh.axes) or math.prod(a.size for a in mesh.axes) != len(mesh.device_ids):
            raise CaptureError("a subject event with a mesh whose axes do not have as many places as it has devices")
    return replace(capture, subject=subject)


def _progress(capture: Capture, frame: Frame) -> Capture:
    progress = _convert(frame.event, Progress, frame)
    return replace(_timed(capture, progress.since), progress=progress)


def _timed(capture: Capture, now: float) -> Capture:
    """With the time of the phase that ends now."""
    if capture.progress is None:
        return capture
    phase, since = capture.progress.phase, capture.progress.since
    return replace(capture, timings={**capture.timings, phase: capture.timings.get(phase, 0.0) + max(0.0, now - since)})


def _stage(capture: Capture, frame: Frame) -> Capture:
    name = _convert(frame.event.get("name"), str, frame)
    if name not in STAGES:
        raise CaptureError(f"a stage event for {name[:100]!r}, which is no stage")
    seconds = _convert(frame.event.get("seconds"), float | None, frame)  # type: ignore[arg-type]
    text, tags = untagged(frame.text) if STAGES[name] != "jaxpr" else (frame.text, b"")
    stage = Stage(name, STAGES[name], Source(name, text), seconds, tags)
    order = list(STAGES)
    others = (other for other in capture.stages if other.name != name)
    return replace(capture, stages=tuple(sorted((*others, stage), key=lambda s: order.index(s.name))))


def _equations(capture: Capture, frame: Frame) -> Capture:
    if len(frame.text) % NUMBERS:
        raise CaptureError("an equations event that does not have three numbers for each operation")
    return replace(capture, equations=frame.text)


def _arguments(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, arguments=_convert(frame.event.get("values"), tuple[Value, ...], frame))


def _outputs(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, outputs=_convert(frame.event.get("values"), tuple[Value, ...], frame))


def _memory(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, memory=_convert(frame.event, Memory, frame))


def _peak(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, peak=Source("peak", frame.text))


def _execution(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, execution=_convert(frame.event, Execution, frame))


def _probe(capture: Capture, frame: Frame) -> Capture:
    probe = _convert({**frame.event, "elements": b""}, Probe, frame)
    return replace(capture, probes=(*capture.probes, replace(probe, elements=frame.text))[:MOST_PROBES])


def _collective_times(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, collective_times=_convert(frame.event.get("values"), tuple[Timing, ...], frame))


def _probed(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, probed=_convert(frame.event, Probed, frame))


def _reference(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, reference=_convert(frame.event, Reference, frame))


def _differences(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, compared=_convert(frame.event.get("values"), tuple[Compared, ...], frame))


def _message(capture: Capture, frame: Frame) -> Capture:
    message = _convert(frame.event, Message, frame)
    message = replace(message, text=plain(message.text))
    return replace(capture, messages=(*capture.messages, message)[:MOST_MESSAGES])


def _failure(capture: Capture, frame: Frame) -> Capture:
    failure = _convert(frame.event, Failure, frame)
    return replace(_ended(capture, frame), failure=failure, complete=False)


def _stdout(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, stdout=frame.text.decode("utf-8", "replace"))


def _stderr(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, stderr=frame.text.decode("utf-8", "replace"))


def _timings(capture: Capture, frame: Frame) -> Capture:
    return replace(capture, timings=_convert(frame.event.get("seconds"), dict[str, float], frame))


def _end(capture: Capture, frame: Frame) -> Capture:
    return replace(_ended(capture, frame), complete=capture.failure is None)


def _ended(capture: Capture, frame: Frame) -> Capture:
    return replace(_timed(capture, _convert(frame.event.get("since", 0.0), float, frame)), progress=None)


def _schema(capture: Capture, frame: Frame) -> Capture:
    if frame.event.get("schema") != SCHEMA:
        raise CaptureError(f"not a capture of this version: {str(frame.event.get('schema'))[:100]!r}, not {SCHEMA!r}")
    return capture


_RULES: dict[str, Callable[[Capture, Frame], Capture]] = {
    "capture": _schema,
    "script": _script,
    "subject": _subject,
    "progress": _progress,
    "stage": _stage,
    "equations": _equations,
    "arguments": _arguments,
    "outputs": _outputs,
    "memory": _memory,
    "peak": _peak,
    "execution": _execution,
    "probe": _probe,
    "probed": _probed,
    "collective_times": _collective_times,
    "differences": _differences,
    "reference": _reference,
    "message": _message,
    "failure": _failure,
    "stdout": _stdout,
    "stderr": _stderr,
    "timings": _timings,
    "end": _end,
}
