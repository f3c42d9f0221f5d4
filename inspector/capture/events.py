"""Frames into events, events into a Capture, and a Capture into events."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from ...parsers.source import Source
from .model import STAGES, Capture, CaptureError, PassSnapshot, Stage
from .protocol import events as sent
from .protocol.events import EVENTS, INFINITE, TEXTS, Event
from .protocol.trace import MAX_PROGRAMS, CompiledProgram
from .protocol.values import (
    CollectiveTimes,
    Differences,
    Execution,
    Gradients,
    Probe,
    Probed,
    Reference,
    Summaries,
    Validation,
)
from .protocol.wire import SCHEMA, Frame
from .tags import plain, tagged, untagged

MAX_MESSAGES = 10_000
MAX_PROBES = 20_000
NUMBERS = 3 * array("I").itemsize
"""Bytes for an operation that comes from an equation."""

HELD: dict[type[Event], str] = {
    sent.Subject: "subject",
    sent.Memory: "memory",
    Execution: "execution",
    Probed: "probed",
    Reference: "reference",
    Gradients: "gradients",
    Validation: "validation",
}
"""The fields of a Capture that hold an event as it is."""

VALUES: dict[type[Event], tuple[str, str]] = {
    sent.Equations: ("numbers", "equations"),
    sent.Arguments: ("values", "arguments"),
    sent.Outputs: ("values", "outputs"),
    sent.ClosedOver: ("values", "closed_over"),
    CollectiveTimes: ("values", "collective_times"),
    Differences: ("values", "compared"),
    Summaries: ("values", "summaries"),
    sent.Timings: ("seconds", "timings"),
    sent.OtherResults: ("values", "other_results"),
    sent.Imported: ("files", "files"),
    sent.Tried: ("text", "tried"),
    sent.Requested: ("text", "request"),
}
"""The one field of an event, and the field of a Capture that holds its value."""


def decode(frame: Frame) -> Event | None:
    """Return the event of a frame; None for one of a later version.

    Raises:
        CaptureError: the event lacks something, or holds something else than it should.
    """
    kind = EVENTS.get(frame.event["event"])
    if kind is None:
        return None
    text = {TEXTS[kind]: frame.text} if kind in TEXTS else {}
    try:
        event = msgspec.convert({**frame.event, **text}, kind)
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        raise CaptureError(f"a {frame.event['event']} event that is not one: {error}") from None
    _check(event)
    return _with_infinity(event) if isinstance(event, Validation) else event


def _with_infinity(validation: Validation) -> Validation:
    """Errors as they were before they were written."""
    outputs = tuple(replace(each, error=_error(each.error)) for each in validation.outputs)
    return replace(validation, error=_error(validation.error), outputs=outputs)


def _error(written: float) -> float:
    return math.inf if written >= INFINITE else written


def _check(event: Event) -> None:
    match event:
        case sent.Schema(schema) if schema != SCHEMA:
            raise CaptureError(f"not a capture of this version: {schema[:100]!r}, not {SCHEMA!r}")
        case sent.Stage(name) if name not in STAGES:
            raise CaptureError(f"a stage event for {name[:100]!r}, which is no stage")
        case CompiledProgram(number) if not 0 <= number < MAX_PROGRAMS:
            raise CaptureError(f"a program with the number {number}, which none has")
        case sent.Equations(numbers) if len(numbers) % NUMBERS:
            raise CaptureError("an equations event that does not have three numbers for each operation")
        case sent.Subject(meshes=meshes):
            for mesh in meshes:
                sizes = [axis.size for axis in mesh.axes]
                if any(size < 1 for size in sizes) or math.prod(sizes) != len(mesh.device_ids):
                    raise CaptureError("a mesh whose axes do not have as many places as it has devices")


def fold(capture: Capture, event: Event | None) -> Capture:
    """Return the capture with what one event adds."""
    kind: Any = type(event)
    changed: dict[str, Any] = {}
    if kind in HELD:
        changed[HELD[kind]] = event
    elif kind in VALUES:
        name, field = VALUES[kind]
        changed[field] = getattr(event, name)
    match event:
        case sent.Script(name, text):
            return replace(capture, script_text=Source(name, text))
        case sent.Progress():
            return replace(_timed(capture, event.since), progress=event)
        case sent.Stage():
            return _with_stage(capture, event)
        case sent.Pass(pipeline, name, changes, text):
            return replace(capture, passes=(*capture.passes, pass_snapshot(pipeline, name, changes, text)))
        case sent.OtherPrograms(values, chosen):
            return replace(capture, others=values, chosen=chosen)
        case sent.Peak(text):
            return replace(capture, peak=Source("peak", text))
        case Probe() if len(capture.probes) >= MAX_PROBES:
            return capture
        case sent.Message() if len(capture.messages) >= MAX_MESSAGES:
            return capture
        case Probe():
            return replace(capture, probes=(*capture.probes, event))
        case sent.Message():
            message = replace(event, text=plain(event.text))
            return replace(capture, messages=(*capture.messages, message))
        case sent.Stdout(text):
            return replace(capture, stdout=text.decode("utf-8", "replace"))
        case sent.Stderr(text):
            return replace(capture, stderr=text.decode("utf-8", "replace"))
        case sent.Failure(since=since):
            said = (plain(event.message), plain(event.details), plain(event.said))
            failure = replace(event, message=said[0], details=said[1], said=said[2])
            return replace(_timed(capture, since), failure=failure, progress=None, complete=False)
        case sent.End(since):
            return replace(_timed(capture, since), progress=None, complete=capture.failure is None)
    return replace(capture, **changed) if changed else capture


def _timed(capture: Capture, now: float) -> Capture:
    if capture.progress is None:
        return capture
    phase, since = capture.progress.phase, capture.progress.since
    return replace(capture, timings={**capture.timings, phase: capture.timings.get(phase, 0.0) + max(0.0, now - since)})


def _with_stage(capture: Capture, event: sent.Stage) -> Capture:
    dialect = STAGES[event.name].dialect
    text, tags = untagged(event.text) if dialect != "jaxpr" else (event.text, b"")
    stage = Stage(event.name, dialect, Source(event.name, text), seconds=event.seconds, tags=tags)
    order = list(STAGES)
    others = (other for other in capture.stages if other.name != event.name)
    return replace(capture, stages=tuple(sorted((*others, stage), key=lambda each: order.index(each.name))))


def pass_snapshot(pipeline: str, name: str, changes: bool, text: bytes) -> PassSnapshot:
    """The module after a pass, whose text has numbers."""
    plain_text, tags = untagged(text)
    return PassSnapshot(pipeline, name, Stage("hlo", "hlo", Source(f"after {name}", plain_text), None, tags), changes)


def events_of(capture: Capture) -> Iterator[Event]:
    """Return the events that `fold` makes this capture from."""
    yield sent.Schema(SCHEMA)
    if capture.script_text is not None:
        yield sent.Script(capture.script_text.name, capture.script_text.data)
    for name in HELD.values():
        if (event := getattr(capture, name)) is not None:
            yield event
    for stage in capture.stages:
        yield sent.Stage(stage.name, stage.seconds, tagged(stage.source.data, stage.tags))
    for each in capture.passes:
        text = tagged(each.stage.source.data, each.stage.tags)
        yield sent.Pass(each.pipeline, each.name, each.changes, text)
    for kind, (name, field) in VALUES.items():
        if value := getattr(capture, field):
            yield kind(**{name: value})
    yield from capture.probes
    if capture.peak is not None:
        yield sent.Peak(capture.peak.data)
    yield from capture.messages
    yield sent.Stdout(capture.stdout.encode("utf-8", "replace"))
    yield sent.Stderr(capture.stderr.encode("utf-8", "replace"))
    if capture.failure is not None:
        yield capture.failure
    if capture.complete:
        yield sent.End()
