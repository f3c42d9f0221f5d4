"""Documents in JSON, of reports that are written out: what is listed in them, and how values are written."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from shardscope.inspector.capture.model import Capture, Value
from shardscope.inspector.capture.protocol.events import Memory, Mesh, MeshAxis, Subject
from shardscope.inspector.capture.protocol.values import (
    Execution,
    OutputSummary,
    Probe,
    Probed,
    Shard,
    Timing,
)
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.types import ArrayType, JaxType
from shardscope.inspector.render.json import resolved, to_json
from shardscope.inspector.render.json.execution import MAX_VALUES
from shardscope.inspector.render.json.shaped import encoded
from shardscope.inspector.report import (
    AxisEntry,
    Edit,
    Experiment,
    Explanation,
    Finding,
    FindingPlace,
    Fix,
    HostTransfer,
    Measured,
    PeakMemory,
    ProbedValue,
    Report,
    ShardedValue,
    SourcePosition,
    StoryStep,
    Suppressed,
    Suppression,
    UncountedCommunication,
    VariableVariance,
)
from shardscope.parsers.sharding_syntax.mesh import AxisRef
from shardscope.parsers.source import Frame, Span

LINE = SourcePosition.exact((Frame("m.py", "f", 7, column=3),))
JAX = JaxType("f32[4]")
X = AxisRef("x")


def document(report: Report, *details: str) -> dict[str, Any]:
    """As it is read again, with everything where it is referred to."""
    return resolved(json.loads(to_json(report, details)))


def report(capture: Capture | None = None, **parts: Any) -> Report:
    return Report(Program(capture or Capture()), **parts)


@pytest.mark.parametrize("text", ["plain", "é", "\x7f", "\x9b1m", "\u202eright", "\u2028", "é\x9b", "\x1b[0m", '"\\'])
def test_no_text_controls_a_terminal(text: str) -> None:
    """It is read as what it was, and is on one line."""
    written = encoded({"text": text, "texts": [text, text], text: {}})
    assert json.loads(written) == {"text": text, "texts": [text, text], text: {}}
    assert all(character.isprintable() or character == "\n" for character in written.decode())
    lines = written.decode().splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("{", "}", 8)
    assert ("é" in written.decode()) is ("é" in text)


def probed(array: np.ndarray[Any, Any], when: str = "after") -> ProbedValue:
    """An array on two devices, the second in reverse."""
    shards = tuple(Shard(device, (number,), f"d{device}", part=f"{number}") for number, device in enumerate((5, 3)))
    elements = array.tobytes() + array[::-1].tobytes()
    shape, dtype = array.shape, array.dtype.name
    path = ("1.0",) if when == "after" else ()
    probe = Probe(path, when, 0, "t", dtype, shape, ("x",), shards, (), (), (0,) * array.ndim, shape, elements)  # type: ignore[arg-type]
    return ProbedValue(probe, JAX, "n", "neg", ("x",), LINE)


@pytest.mark.parametrize("count", [1, MAX_VALUES - 1, MAX_VALUES, MAX_VALUES + 1])
def test_values_up_to_a_number(count: int) -> None:
    """Of more than these there are the bits, which are all of the same."""
    array = np.arange(count, dtype=np.float32)
    found = document(report(probes=(probed(array),)), "values")["execution"]["probes"]
    for each, (device, of) in zip(found, ((5, array), (3, array[::-1])), strict=True):
        assert each["values"] == (of.tolist() if count <= MAX_VALUES else None)
        assert np.frombuffer(bytes.fromhex(each["bits"]), np.float32).tolist() == of.tolist()
        assert (each["device"], each["digest"], each["site"]) == (device, f"d{device}", ["1.0"])
    assert [each["coords"] for each in found] == [{"x": 0}, {"x": 1}]
    assert document(report(probes=(probed(array),)))["execution"]["probes"] == []


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int8, np.bool_])
def test_values_that_json_cannot_write(dtype: type[np.generic]) -> None:
    """They are texts that Python reads."""
    numbers = [0.5, math.inf, -math.inf, math.nan, 1] if dtype in (np.float32, np.complex64) else [0, 1, 1]
    array = np.array(numbers).astype(dtype)
    kind = {"f": float, "c": complex, "i": int, "b": bool}[array.dtype.kind]
    (first, _) = document(report(probes=(probed(array),)), "values")["execution"]["probes"]
    read = [kind(each) for each in first["values"]]
    np.testing.assert_array_equal(np.array(read, dtype), array)
    is_text = [isinstance(each, str) for each in first["values"]]
    assert is_text == [kind is complex or not math.isfinite(each) for each in numbers]


MESHES = tuple(Mesh((MeshAxis("x", size),), tuple(range(size)), key=f"x={size}") for size in (2, 4))
ARGUMENT = Value("a", "f32[4]", "P('x')", mesh="x=2", actual_mesh="x=4")


@pytest.mark.parametrize("count", [None, 0, 1, 2])
def test_meshes_are_named_where_there_are_several(count: int | None) -> None:
    subject = None if count is None else Subject("f", None, "cpu", "cpu", 4, meshes=MESHES[:count])
    found = document(report(Capture(subject=subject, arguments=(ARGUMENT,), outputs=(ARGUMENT,))))
    expected = ("x=2", "x=4") if count == 2 else (None, None)
    for value in found["arguments"] + found["outputs"]:
        assert (value.get("mesh"), value.get("actual_mesh")) == expected


def sharded(role: str, name: str, agrees: bool | None) -> ShardedValue:
    array = ArrayType("f32", (4,))
    return ShardedValue("sdy", role, "%a", name, Span(0, 1), array, None, None, None, None, agrees, None, LINE)  # type: ignore[arg-type]


SHARDED = (
    sharded("argument", "a", True),
    sharded("argument", "b", False),
    sharded("output", "c", None),
    sharded("output", "d", False),
    sharded("constraint", "e", True),
)


@pytest.mark.parametrize(
    ("arguments", "outputs", "details", "names"),
    [
        ((), (), (), "abcde"),
        ((ARGUMENT,), (), (), "bde"),
        ((), (ARGUMENT,), (), "bde"),
        ((ARGUMENT,), (ARGUMENT,), (), "bde"),
        ((ARGUMENT,), (ARGUMENT,), ("shardings",), "abcde"),
        ((ARGUMENT,), (ARGUMENT,), ("values",), "abcde"),
        ((ARGUMENT,), (ARGUMENT,), ("stages",), "bde"),
    ],
)
def test_shardings_that_are_said_elsewhere(
    arguments: tuple[Value, ...], outputs: tuple[Value, ...], details: tuple[str, ...], names: str
) -> None:
    """Arguments and outputs have their own lists; among the shardings are those that differ from what was asked."""
    found = document(report(Capture(arguments=arguments, outputs=outputs), shardings=SHARDED), *details)
    assert "".join(each["name"] for each in found["shardings"]) == names


@pytest.mark.parametrize(
    ("details", "names"), [((), "uw"), (("variance",), "uvw"), (("values",), "uvw"), (("all",), "uvw")]
)
def test_variance_where_it_changes(details: tuple[str, ...], names: str) -> None:
    entry = AxisEntry("x", "1.0", "pcast", LINE)
    first = VariableVariance("1.0", "p", "u", JAX, ("x",), (), (), LINE, entered=(entry,))
    variance = (
        first,
        replace(first, equation="1.1", value="v"),
        replace(first, equation="1.2", value="w", left=("y",)),
    )
    found = document(report(variance=variance), *details)["variance"]
    assert "".join(each["value"] for each in found) == names
    assert {each["entered"][0]["by"] for each in found} == {"pcast"}
    assert {each["source"]["line"] for each in found} == {7}


@pytest.mark.parametrize(("details", "paths"), [((), "b"), (("values",), "abc"), (("times",), "b")])
def test_outputs_that_are_not_finite(details: tuple[str, ...], paths: str) -> None:
    outputs = tuple(OutputSummary(path, "f32[2]", None, non_finite=n) for path, n in (("a", 0), ("b", 2), ("c", None)))
    ran = Capture(
        execution=Execution(outputs, (0.5, 0.25), seeded_inputs=True), probed=Probed({"copy": 1}, {"copy": 2})
    )
    found = document(report(ran), *details)["execution"]
    assert "".join(each["path"] for each in found["outputs"]) == paths
    assert (found["ran"], found["seeded_inputs"], found["seconds"]) == (True, True, [0.5, 0.25])
    assert (found["shown"], found["probed"]) == ({"copy": 1}, {"copy": 2})
    none = document(report(), *details)["execution"]
    assert (none["ran"], none["seeded_inputs"], none["seconds"], none["outputs"]) == (False, False, [], [])
    assert (none["shown"], none["probed"]) == (None, None)


EDIT = Edit("m.py", 7, 0, 7, 1, "b")
FOUND = Finding(
    "SS01", "slug", "info", "likely", (X, AxisRef("y", (1, 2))), "message", FindingPlace("it", LINE, "hlo", Span(3, 5)),
    related=(FindingPlace("other", SourcePosition()),), evidence=(("type", "f32[4]"),),
    saved_bytes=8, saved_seconds=0.5,
)  # fmt: skip
WORSE = Experiment(
    "not helping",
    "worse",
    Measured((("all-reduce x", 2),), (("x", 8),), 8, 1.0),
    Measured((), (), 16, 2.0),
    "differ",
    ("a: 1",),
)


@pytest.mark.parametrize(
    ("fixes", "verified"),
    [
        ((), "not tried"),
        ((Fix("advice"),), "not tried"),
        ((Fix("change", (EDIT,)),), "not tried"),
        ((Fix("change", (EDIT,), WORSE),), "no"),
        ((Fix("advice"), Fix("change", (EDIT,), replace(WORSE, state="tried"))), "yes"),
    ],
)
def test_findings_with_their_fixes(fixes: tuple[Fix, ...], verified: str) -> None:
    known = Suppressed(FOUND, Suppression("m.py", 9, ("SS01",), "known"))
    written = document(report(findings=(replace(FOUND, fixes=fixes),), suppressed=(known,)))
    (found,) = written["findings"]
    assert (found["fix"], found["verified"]) == (
        None if not fixes or verified == "no" else fixes[verified == "yes"].title,
        verified,
    )
    assert [each["state"] for each in found["fixes"]] == [each.state for each in fixes]
    assert len(found["edits"]) == any(fix.edits for fix in fixes)
    assert found["axes"] == ["x", "y:(1)2"]
    assert found["saves"] == {"bytes": 8, "seconds": 0.5}
    place = found["location"]
    assert (place["what"], place["start"], place["end"], place["source"]["line"]) == ("it", 3, 5, 7)
    assert (found["related"][0]["start"], found["related"][0]["end"]) == (None, None)
    unknown = {"memory": None, "flops": None}
    before = {"collectives": {"all-reduce x": 2}, "axes": {"x": 8}, "bytes": 8, "seconds": 1.0, **unknown}
    sent = {"before": before, "after": {"collectives": {}, "axes": {}, "bytes": 16, "seconds": 2.0, **unknown}}
    tried = {"why": "worse", "values": "differ", "compared_by": "run", "changes": ["a: 1"], "next_step": False, **sent}
    assert found["trial"] == (None if verified == "not tried" else tried)
    (suppressed,) = written["suppressed"]
    assert (suppressed["reason"], suppressed["line"], suppressed["finding"]["rule"]) == ("known", 9, "SS01")


@pytest.mark.parametrize("severity", ["error", "warning", "info"])
@pytest.mark.parametrize("details", [(), ("findings",)])
def test_evidence_of_notes_is_left_out(severity: Any, details: tuple[str, ...]) -> None:
    (found,) = document(report(findings=(replace(FOUND, severity=severity),)), *details)["findings"]
    assert found["evidence"] == ({} if severity == "info" and not details else {"type": "f32[4]"})


@pytest.mark.parametrize(("trial", "works"), [(None, None), (WORSE, False), (replace(WORSE, state="tried"), True)])
def test_why_a_function_does_not_trace(trial: Experiment | None, works: bool | None) -> None:
    explained = Explanation("title", (StoryStep("step", LINE),), (Fix("change", (EDIT,), trial),))
    assert document(report())["explanation"] is None
    found = document(report(explanation=explained))["explanation"]
    assert (found["title"], [(each["what"], each["source"]["line"]) for each in found["steps"]]) == (
        "title",
        [("step", 7)],
    )
    (remedy,) = found["remedies"]
    assert (remedy["what"], remedy["works"], len(remedy["edits"])) == ("change", works, 1)
    told = ("worse", "differ", ["a: 1"]) if trial else ("", "not compared", [])
    assert (remedy["why"], remedy["values"], remedy["changes"]) == told


@pytest.mark.parametrize("axes", [None, (), (X,)])
@pytest.mark.parametrize("type", [None, ArrayType("f32", (4,))])
def test_communication_that_is_not_counted(axes: tuple[AxisRef, ...] | None, type: ArrayType | None) -> None:
    """No axes and axes that are not known are two things."""
    found = document(report(uncounted=(UncountedCommunication("k", "copy", type, LINE, axes, ((0, 1),), 2),)))
    (each,) = found["uncounted"]
    assert (each["axes"], each["type"]) == (None if axes is None else list(map(str, axes)), type and "f32[4]")
    assert each["count"] == 2
    frame = {"file": "m.py", "function": "f", "line": 7, "column": 3}
    source = {"file": "m.py", "line": 7, "function": "f", "library": None, "stack": [frame], "confidence": "exact"}
    assert each["source"] == source


def test_memory_and_what_goes_to_the_host_and_back() -> None:
    account = Memory(arguments=1, outputs=2, temporaries=3, aliased=0, code=None, peak=9, host=5)
    copy = HostTransfer("c", "to host", ArrayType("f32", (4,)), 16, None, LINE)
    peak = PeakMemory(6, 8, None, transfers=(copy, replace(copy, source=SourcePosition())))
    known = document(report(Capture(memory=account), peak=peak))["memory"]
    assert {name: known[name] for name in ("arguments", "outputs", "temporaries", "aliased", "code", "host")} == {
        "arguments": 1, "outputs": 2, "temporaries": 3, "aliased": 0, "code": None, "host": 5
    }  # fmt: skip
    assert (known["most"], known["capacity"], known["fits"], known["peak"]) == (6, 8, True, None)
    told = {"name": "c", "direction": "to host", "type": "f32[4]", "bytes": 16, "executions": None}
    assert known["transfers"] == [told | {"file": "m.py", "line": 7}, told | {"file": None, "line": None}]
    unknown = document(report(Capture(memory=account)))["memory"]
    assert [unknown[name] for name in ("most", "capacity", "fits", "peak")] == [None] * 4
    assert (unknown["transfers"], unknown["host"]) == ([], 5)
    assert document(report())["memory"] is None


@pytest.mark.parametrize("details", [(), ("times",), ("values",), ("all",)])
def test_measured_times(details: tuple[str, ...]) -> None:
    times = (Timing("c", 1, 3, 2, 0.5, 0.25),)
    found = document(report(Capture(collective_times=times)), *details)["execution"]["timings"]
    timing = {"name": "c", "device": 1, "runs": 3, "count": 2, "seconds": 0.5, "late": 0.25}
    assert found == ([timing] if details in (("times",), ("all",)) else [])
