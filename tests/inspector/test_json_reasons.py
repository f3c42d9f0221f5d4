"""Reasons for shardings in JSON, with their steps and without them, conflicts, and what is alive at the peak."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.events import Memory
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.types import ArrayType
from shardscope.inspector.render.json import sharding as shapes
from shardscope.inspector.render.json.execution import MAX_ALIVE, memory_of
from shardscope.inspector.render.json.references import shaped
from shardscope.inspector.render.json.sharding import MAX_STEPS, ReasonRef, StepRef, sharding_of
from shardscope.inspector.report import (
    BoundaryOrigin,
    Conflict,
    ExplainedStep,
    LiveValue,
    NamedOperation,
    Report,
    ShardedValue,
    Side,
    SourcePosition,
    ValueDimension,
    ValueName,
    Why,
)
from shardscope.inspector.report.report import OnDemand
from shardscope.parsers.sharding_syntax.mesh import AxisRef
from shardscope.parsers.source import Frame, Span

LINE = SourcePosition.exact((Frame("m.py", "f", 7),))
ADD = NamedOperation("add", "stablehlo.add")
ONE, OTHER = ValueDimension(ValueName("w"), 1), ValueDimension(ValueName("%3", ADD), None)


def step(number: int | None = 4, operation: NamedOperation | None = ADD, place: SourcePosition = LINE) -> ExplainedStep:
    return ExplainedStep(number, operation, "ij->ij", ONE, OTHER, place, None)


def why(steps: int, omitted: int) -> Why:
    origin = BoundaryOrigin("argument", "w", 1)
    return Why(AxisRef("x", (1, 2)), 0, origin, LINE, ONE, (step(),) * steps, omitted)


def test_a_step_of_propagation() -> None:
    ends = {"source": "w dim 1", "target": "%3 (add)", "rule": "ij->ij"}
    known = msgspec.to_builtins(StepRef(step()).entry(), enc_hook=str)
    assert known == {"step": 4, "operation": "add", "file": "m.py", "line": 7, **ends}
    returned = msgspec.to_builtins(StepRef(step(None, None, SourcePosition())).entry(), enc_hook=str)
    assert returned == {"step": None, "operation": "return", "file": None, "line": None, **ends}


@pytest.mark.parametrize(("steps", "omitted"), product((0, 1, 3), (0, 2)))
def test_a_reason_and_its_short_form(steps: int, omitted: int) -> None:
    """Where steps are left out, their number says so, and where all are, the first value is not known from here."""
    reason = ReasonRef(why(steps, omitted))
    short = reason.shortened()
    for each, left, out in ((reason, steps, omitted), (short, 0, steps + omitted)):
        entry = each.entry()
        assert (str(entry.axis), entry.dim, str(entry.origin)) == ("x:(1)2", 0, "argument w")
        assert (len(entry.steps), entry.omitted) == (left, out or None)
        assert entry.root == ("w dim 1" if left or not out else None)
        assert entry.place.value == LINE


def words(side: shapes.Side) -> tuple[str, list[str]]:
    return str(side.value), list(map(str, side.axes))


@pytest.mark.parametrize("chosen", [None, Side(ONE, (AxisRef("x"),), (why(0, 0),))])
def test_the_sides_of_a_conflict(chosen: Side | None) -> None:
    sides = [Side(OTHER, (AxisRef("y"), AxisRef("z", (1, 2))), (why(1, 0),) * count) for count in range(3)]
    conflict = Conflict(ADD, "ij->ij", "i", LINE, Span(0, 1), chosen, tuple(sides[:2]), tuple(sides[2:]))
    found = shaped(shapes.Conflict, conflict)
    assert (str(found.operation), found.rule, found.factor, found.place.value) == ("add", "ij->ij", "i", LINE)
    assert (found.chosen and words(found.chosen)) == (chosen and ("w dim 1", ["x"]))
    assert list(map(words, found.rejected)) == [("%3 (add)", ["y", "z:(1)2"])] * 2
    assert [len(each.why) for each in (*found.rejected, *found.undecided)] == [0, 1, 2]


@pytest.mark.parametrize("local", [None, ArrayType("f32", (2,))])
def test_types_of_a_sharded_value(local: ArrayType | None) -> None:
    value = ShardedValue(
        "sdy", "constraint", "%a", "a", Span(0, 1), ArrayType("f32", (4,)), local, None, None, None, None, None, LINE
    )
    found = sharding_of(value, Report(Program(Capture())), explain=False)
    assert (str(found.type), local and str(found.local_type), found.why) == ("f32[4]", local and "f32[2]", [])


@pytest.mark.parametrize(("role", "most"), [("value", 1), ("argument", MAX_STEPS), ("constraint", MAX_STEPS)])
def test_how_far_a_sharding_is_explained(role: str, most: int) -> None:
    """Of a value inside the last step, which leads to a value that has the one before; of others the way."""
    asked = OnDemand(why=lambda value, steps: (why(steps or 0, 0),))
    report = Report(Program(Capture()), on_demand=asked)
    value = ShardedValue(
        "sdy", role, "%a", "a", Span(0, 1), ArrayType("f32", (4,)), None, None, None, None, None, None, LINE  # type: ignore[arg-type]
    )  # fmt: skip
    (reason,) = sharding_of(value, report, explain=True).why
    assert len(reason.value.steps) == most
    assert sharding_of(value, report, explain=False).why == []


@pytest.mark.parametrize(
    ("details", "count"), [((), MAX_ALIVE), (("memory",), 9), (("values",), 9), (("times",), MAX_ALIVE)]
)
def test_values_at_the_peak(details: tuple[str, ...], count: int) -> None:
    types = (None, ArrayType("f32", (4,)))
    alive = [LiveValue(f"v{number}", 9 - number, types[number % 2], "", "forward", LINE) for number in range(9)]
    asked = OnDemand(alive_at_peak=lambda: tuple(alive))
    found = memory_of(Memory(), Report(Program(Capture()), on_demand=asked), details).alive
    assert [(each.name, each.type) for each in found] == [(f"v{n}", ("", "f32[4]")[n % 2]) for n in range(count)]
