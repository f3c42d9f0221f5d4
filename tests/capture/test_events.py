"""Events become a Capture, a Capture becomes the events again, and what is no event is refused."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext, suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardscope.inspector.capture import events
from shardscope.inspector.capture.events import decode, events_of, fold
from shardscope.inspector.capture.model import (
    STAGES,
    Capture,
    CaptureError,
    Execution,
    Failure,
    Memory,
    Mesh,
    MeshAxis,
    Message,
    OutputSummary,
    Progress,
    Stage,
    Subject,
    Value,
)
from shardscope.inspector.capture.protocol.events import EVENTS, frame_of
from shardscope.inspector.capture.protocol.trace import MAX_PROGRAMS, CompiledProgram
from shardscope.inspector.capture.protocol.values import (
    Apart,
    Compared,
    Difference,
    Probe,
    Probed,
    Reference,
    Shard,
    Timing,
)
from shardscope.inspector.capture.protocol.wire import Frame
from shardscope.parsers.source import Source

from tests.sweeps import examples

from .conftest import Captured

FULL = Capture(
    subject=Subject(
        "f.py:f",
        "/f.py",
        "cpu",
        "cpu",
        4,
        "0.12.0",
        "0.12.0",
        "3.13.0",
        (Mesh((MeshAxis("x", 2), MeshAxis("y", 2, "explicit")), (0, 2, 1, 3), "mesh"),),
        (0, 2, 1, 3),
    ),
    stages=tuple(Stage(name, kind.dialect, Source(name, name.encode() * 3), 0.5) for name, kind in STAGES.items()),
    arguments=(Value("x", "f32[8]", "P('x')", donated=True),),
    outputs=(Value("result['a']", "f32[8]"),),
    memory=Memory(arguments=32, peak=64),
    execution=Execution((OutputSummary("result", "f32[]", None, 1.0, 1.0, 1.0, 0, "1.0"),), (0.1, 0.2), True),
    collective_times=(Timing("all-reduce.1", 2, 5, 1, 1e-4, 1e-6),),
    probes=(
        Probe((), "argument", 0, "f32[8]", "float32", (2,), ("x", "y"), (Shard(0, (0, 0), "ab", "0:2"),)),
        Probe(
            ("0.1", "1.4"),
            "after",
            0,
            "f32[2]{V:x}",
            "float32",
            (2,),
            ("x",),
            (Shard(0, (0,), "ab", "", 1.0, 1.5, 2.0, 0), Shard(1, (1,), "cd")),
            (3, 0),
            ("0.1", "1.2"),
            (0,),
            (2,),
            bytes(range(16)),
        ),
    ),
    probed=Probed({"all-reduce": 1}, {"all-reduce": 1}, 0.25),
    compared=(Compared(("0.1", "1.4"), 0, ("x",), (Difference("x", (3,), (0, 1)),)),),
    reference=Reference(4, (Apart(("0.1", "1.4"), "after", 0, (3,), (1,), 5000.0),)),
    messages=(Message("warning", "text", "compile", "a.cc:12"),),
    script_text=Source("/f.py", b"def f(): pass\n"),
    stdout="out",
    stderr="err",
    complete=True,
    timings={"import": 1.0, "trace": 0.25},
)


def plain(value: Any) -> Any:
    """A value with the texts of its sources, which compare by identity only."""
    if isinstance(value, Source):
        return value.name, value.data
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def take(capture: Capture, frame: Frame) -> Capture:
    return fold(capture, decode(frame))


def rebuilt(capture: Capture) -> Capture:
    result = Capture()
    for frame in map(frame_of, events_of(capture)):
        result = take(result, Frame(json.loads(json.dumps(frame.event)), frame.text))
    return result


def test_there_and_back() -> None:
    failed = replace(FULL, complete=False, failure=Failure("died", "m", "compile", "details", "hint"))
    for capture in (FULL, failed, Capture()):
        assert plain(rebuilt(capture)) == plain(capture)


def test_a_real_capture_there_and_back(program: Captured) -> None:
    capture = program("kinds.py:mapped")
    assert plain(rebuilt(capture)) == plain(capture)


def test_stages_come_in_their_order_whenever_they_arrive() -> None:
    capture = Capture()
    for name in reversed(STAGES):
        capture = take(capture, Frame({"event": "stage", "name": name, "seconds": None}, b"text"))
    assert [stage.name for stage in capture.stages] == list(STAGES)
    again = take(capture, Frame({"event": "stage", "name": "sdy", "seconds": 2}, b"better"))
    assert len(again.stages) == len(STAGES)
    assert again.stage("sdy") != capture.stage("sdy")


def test_phases_are_timed() -> None:
    capture = Capture()
    for phase, since in (("import", 1.0), ("trace", 3.5), ("import", 4.0)):
        capture = take(capture, Frame({"event": "progress", "phase": phase, "since": since}))
    assert capture.progress == Progress("import", 4.0)
    ended = take(capture, Frame({"event": "end", "since": 4.5}))
    assert ended.timings == {"import": 3.0, "trace": 0.5}
    assert ended.complete
    assert ended.progress is None


@pytest.mark.parametrize("phases", [("trace",), ("trace", "trace", "lower"), ("run", "trace", "run")])
def test_what_fails_ends_its_phase(phases: tuple[str, ...]) -> None:
    capture = Capture()
    for number, phase in enumerate(phases):
        capture = take(capture, Frame({"event": "progress", "phase": phase, "since": 2.0 * number}))
    failure = {"event": "failure", "kind": "function", "message": "m", "phase": phases[-1]}
    failed = take(capture, Frame(failure | {"since": 2.0 * len(phases)}))
    assert failed.timings == {phase: 2.0 * phases.count(phase) for phase in phases}
    assert take(failed, Frame({"event": "end", "since": 99.0})).timings == failed.timings
    backwards = take(capture, Frame({"event": "end", "since": -5.0}))
    assert all(seconds >= 0 for seconds in backwards.timings.values())


def test_messages_and_probes_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = next(event for event in events.events_of(FULL) if isinstance(event, Probe))
    message = Message("info", "x", "run")
    monkeypatch.setattr(events, "MAX_MESSAGES", 3)
    monkeypatch.setattr(events, "MAX_PROBES", 2)
    capture = Capture()
    for count in range(1, 6):
        capture = events.fold(events.fold(capture, probe), message)
        assert (len(capture.probes), len(capture.messages)) == (min(count, 2), min(count, 3))


@pytest.mark.parametrize("sizes", [(), (1,), (2, 3), (0,), (-1, -6)])
@pytest.mark.parametrize("devices", [0, 1, 6])
def test_a_mesh_has_as_many_places_as_devices(sizes: tuple[int, ...], devices: int) -> None:
    mesh = {
        "axes": [{"name": f"a{number}", "size": size} for number, size in enumerate(sizes)],
        "device_ids": list(range(devices)),
    }
    subject = {"function": "f", "script": None, "target": "cpu", "platform": "cpu", "device_count": 1, "meshes": [mesh]}
    fits = all(size > 0 for size in sizes) and math.prod(sizes) == devices
    frame = Frame({"event": "subject", **subject})
    if fits:
        assert take(Capture(), frame).subject is not None
    else:
        with pytest.raises(CaptureError):
            take(Capture(), frame)


def test_unknown_events_are_passed_over() -> None:
    assert take(FULL, Frame({"event": "of a later version", "x": 1}, b"text")) is FULL


@pytest.mark.parametrize(
    "event",
    [
        {"event": "subject"},
        {"event": "subject", "function": 1, "script": None, "target": "cpu", "platform": "cpu", "device_count": 1},
        {"event": "stage", "name": "ptx", "seconds": None},
        {"event": "stage", "seconds": None},
        {"event": "stage", "name": "hlo", "seconds": "long"},
        {"event": "progress", "phase": "lunch", "since": 1},
        {"event": "arguments", "values": [{"path": "x"}]},
        {"event": "arguments"},
        {"event": "memory", "arguments": "many"},
        {"event": "message", "level": "shout", "text": "x", "phase": "run"},
        {"event": "failure", "kind": "unknown", "message": "m", "phase": "run"},
        {"event": "execution", "outputs": [1]},
        {"event": "timings", "seconds": [1]},
        {"event": "capture", "schema": "shardscope.capture/2"},
        {"event": "end", "since": "late"},
        {"event": "script"},
    ],
)
def test_what_is_no_event(event: dict[str, Any]) -> None:
    with pytest.raises(CaptureError):
        take(Capture(), Frame(event))


@pytest.mark.parametrize(("size", "device_ids"), [(1 << 40, [0]), (0, []), (-1, [0])])
def test_a_mesh_that_is_larger_than_its_devices(size: int, device_ids: list[int]) -> None:
    mesh = {"axes": [{"name": "x", "size": size}], "device_ids": device_ids}
    subject = {"function": "f", "script": None, "target": "cpu", "platform": "cpu", "device_count": 1, "meshes": [mesh]}
    with pytest.raises(CaptureError, match="places"):
        take(Capture(), Frame({"event": "subject", **subject}))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "size", "path"]), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(sorted(EVENTS))


@pytest.mark.once
@settings(max_examples=examples(75, 300), deadline=None)
@given(NAMES, st.sampled_from([frame.event for frame in map(frame_of, events_of(FULL))]), st.data())
def test_mutated_events_give_a_capture_or_the_error(name: str, event: dict[str, Any], data: Any) -> None:
    changed = {**event, "event": name}
    for key in data.draw(st.lists(st.sampled_from(sorted(changed)), max_size=2)):
        if key != "event":
            changed[key] = data.draw(VALUES)
    with suppress(CaptureError):
        assert isinstance(take(FULL, Frame(changed, b"\xff")), Capture)


@pytest.mark.parametrize("number", [-1, 0, MAX_PROGRAMS - 1, MAX_PROGRAMS])
def test_programs_of_a_trace_have_places(number: int) -> None:
    """Each has one in a file of counts, whose size is known before."""
    with nullcontext() if 0 <= number < MAX_PROGRAMS else pytest.raises(CaptureError, match="which none has"):
        assert decode(frame_of(CompiledProgram(number, "f", "f"))) == CompiledProgram(number, "f", "f")
