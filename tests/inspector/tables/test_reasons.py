"""Lines for the reasons of shardings, conflicts and collectives, and for collectives that break a promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shardscope.inspector.render.why_lines import (
    BY,
    MAX_CAUSES,
    MAX_COLLECTIVES,
    MAX_STEPS,
    cause_line,
    conflict_lines,
    offences,
    remedy_line,
    side_text,
    step_text,
    why_line,
)
from shardscope.inspector.report import (
    BoundaryOrigin,
    CollectiveCause,
    Conflict,
    ConstraintOrigin,
    ExplainedStep,
    MovedDimension,
    NamedOperation,
    Side,
    SourcePosition,
    ValueDimension,
    ValueName,
    Why,
)
from shardscope.inspector.report.report import OnDemand
from shardscope.parsers.sharding_syntax.mesh import AxisRef
from shardscope.parsers.source import Frame, Span

from .by_hand import at, axes, collective, report

X = AxisRef("x")
DOT = NamedOperation("dot_general", "dot_general")
VALUE = ValueDimension(ValueName("w"), 1)
ARGUMENT = BoundaryOrigin("argument", "w", 1)


def step(number: int | None = 1, operation: NamedOperation | None = DOT, line: int = 7) -> ExplainedStep:
    return ExplainedStep(number, operation, None, VALUE, VALUE, at(line) if line else SourcePosition(), None)


def why(steps: int = 0, origin: Any = ARGUMENT, line: int = 0, dim: int | None = 0) -> Why:
    place = at(line) if line else SourcePosition()
    return Why(X, dim, origin, place, VALUE, tuple(step(number) for number in range(steps)))


def cause(effect: Any = "sum", **fields: Any) -> CollectiveCause:
    moved = MovedDimension(True, ValueName("%1", NamedOperation("mul", "mul")), 1)
    known = {"operation": DOT, "rule": None, "place": at(7), "moved": moved, "before": "P('x')", "after": "P()"}
    more = {"origins": (1,), "against": (), "needed": False, "confidence": "exact"}
    return CollectiveCause(**{"effect": effect, **known, **more, **fields})


@pytest.mark.parametrize("count", range(MAX_STEPS + 3))
def test_a_path_is_told_by_its_ends(count: int) -> None:
    """The first steps and the last, with the number of those between."""
    line = why_line(why(count), "w", report())
    head = "x on w dim 0 ← argument w dim 1"
    numbers = [*range(count)] if count <= MAX_STEPS else [*range(MAX_STEPS - 1), count - 1]
    steps = ", ".join(f"dot_general (model.py:7, step {number})" for number in numbers)
    more = f" and {count - MAX_STEPS} more" if count > MAX_STEPS else ""
    assert line == (f"{head}, via {steps}{more}" if count else head)


def test_origins() -> None:
    constraint = ConstraintOrigin()
    for origin, line, text in (
        (ARGUMENT, 7, "argument w dim 1"),
        (BoundaryOrigin("output", "y"), 7, "output y"),
        (BoundaryOrigin("output", "y", 0), 0, "output y dim 0"),
        (constraint, 7, "with_sharding_constraint (model.py:7)"),
        (constraint, 0, "with_sharding_constraint"),
    ):
        assert why_line(why(0, origin, line), "w", report()) == f"x on w dim 0 ← {text}"
    assert why_line(why(dim=None), "w", report()) == "x on w ← argument w dim 1"


def test_steps() -> None:
    assert step_text(step(0), report()) == "dot_general (model.py:7, step 0)"
    assert step_text(step(None, None, 0), report()) == "return"
    assert step_text(step(None), report()) == "dot_general (model.py:7)"
    assert step_text(step(3, line=0), report()) == "dot_general (step 3)"


def test_sides_of_a_conflict() -> None:
    one, other = Side(VALUE, (X,), (why(),)), Side(VALUE, (), (), (why(dim=2),))
    assert side_text(one, report()) == "w dim 1: x (x ← argument w dim 1)"
    assert side_text(other, report()) == "w dim 1: unsharded (x shards dim 2 ← argument w dim 1)"
    assert side_text(Side(VALUE, axes("x", "y"), ()), report()) == "w dim 1: x, y"
    known = Conflict(DOT, "ij,jk->ik", "j", at(7), Span(0, 1), one, (other, other))
    assert [line.partition(" w dim")[0] for line in conflict_lines(known, report())] == [
        "dot_general (model.py:7, ij,jk->ik): conflicting shardings for j",
        "  chosen  ",
        "  rejected",
        "  rejected",
    ]
    unknown = Conflict(DOT, "ij,jk->ik", "j", SourcePosition(), Span(0, 1), None, (), (one,))
    assert [line.partition(" w dim")[0] for line in conflict_lines(unknown, report())] == [
        "dot_general (ij,jk->ik): conflicting shardings for j",
        "          ",
    ]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            cause(is_contraction=True),
            "dot_general (model.py:7) contracts over a sharded dimension: dim 1 of operand %1 (mul), P('x')",
        ),
        (
            cause(operation=NamedOperation("reduce_sum", "reduce"), place=SourcePosition(), rule="ij->i"),
            "reduce_sum (ij->i) reduces over a sharded dimension: dim 1 of operand %1 (mul), P('x')",
        ),
        (cause("reshard"), "dot_general (model.py:7) needs operand %1 (mul) as P(), but it is P('x')"),
        (
            cause("reshard", moved=None, place=SourcePosition()),
            "dot_general needs its operand as P(), but it is P('x')",
        ),
        (
            cause("move", rule="i->j"),
            "dot_general (model.py:7, i->j) works across the shards of dim 1 of operand %1 (mul), P('x')",
        ),
        (
            cause("own"),
            "dot_general (model.py:7): partitioned without a Shardy rule; dim 1 of operand %1 (mul) is P('x')",
        ),
        (
            cause("own", rule="ij->i"),
            "dot_general (model.py:7, ij->i): partitioned otherwise than by its sharding rule; dim 1 of operand"
            " %1 (mul) is P('x')",
        ),
    ],
)
def test_causes(found: CollectiveCause, text: str) -> None:
    assert cause_line(found, report()) == text


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (cause(), "CUT"),
        (
            cause(needed=True),
            "needed: each device has the gradient of its part of the data, to be summed (CUT)",
        ),
        (
            cause("reshard"),
            "to avoid it, request P('x') there, or keep that dimension unsharded: CUT",
        ),
        (cause("reshard", rule="r"), "to avoid it, keep that dimension unsharded: CUT"),
        (
            cause("reshard", rule="r", against=(2,)),
            "to avoid it, change either: CUT; or x is from C",
        ),
        (
            cause("reshard", rule="r", against=(1,)),
            "to avoid it, constrain one of the operands: both are sharded by the same, CUT",
        ),
        (cause("move"), "to avoid it, keep that dimension unsharded: CUT"),
        (cause("own"), "to choose how it is partitioned, constrain its operands: CUT"),
        (cause("own", origins=()), ""),
    ],
)
def test_remedies(found: CollectiveCause, text: str) -> None:
    """Each axis with its origins, each once."""

    def reasons(wanted: Any, most: int | None) -> tuple[Why, ...]:
        assert most == 0  # only the origins are named
        named = {(): [], (1,): [("x", "A"), ("y", "A"), ("x", "B"), ("x", "A")], (2,): [("x", "C")]}[wanted]
        return tuple(Why(AxisRef(axis), 0, origin, SourcePosition(), VALUE, ()) for axis, origin in named)  # type: ignore[arg-type]

    assert remedy_line(found, report(on_demand=OnDemand(reasons=reasons))) == text.replace(
        "CUT", "x is from A and B, y is from A"
    )


def lines_of(*fields: dict[str, Any], causes: int = 0, count: int = 1) -> list[str]:
    asked = OnDemand(
        causes=lambda _: (cause("own", moved=None),) * causes, reasons=lambda *_: (why(),) * bool(causes > 1)
    )
    return [*offences([(collective(**each), count) for each in fields], report(on_demand=asked))]


@pytest.mark.parametrize(
    ("fields", "count", "text"),
    [
        ({}, 1, "all-reduce over tp, , 48 B sent per device, written here"),
        ({}, 3, "3× all-reduce over tp, , 48 B sent per device, written here"),
        ({"axes": None}, 1, "all-reduce over groups of no axes, , 48 B sent per device, written here"),
        ({"axes": ()}, 1, "all-reduce over one device each, , 48 B sent per device, written here"),
        ({"executions": 4}, 1, "all-reduce over tp, , 48 B sent per device, executed 4 times, written here"),
        ({"executions": None}, 1, "all-reduce over tp, , 48 B sent per device, executed ? times, written here"),
        (
            {"executions": None, "most_executions": 2},
            1,
            "all-reduce over tp, , 48 B sent per device, executed at most 2 times, written here",
        ),
        ({"direction": "backward"}, 1, "all-reduce over tp, , 48 B sent per device, backward pass, written here"),
        ({"direction": "unknown"}, 1, "all-reduce over tp, , 48 B sent per device, written here"),
        ({"origin": "unknown"}, 1, "all-reduce over tp, , 48 B sent per device"),
        ({"origin": "partitioner"}, 1, f"all-reduce over tp, , 48 B sent per device, {BY['partitioner']}"),
    ],
)
def test_collectives_that_are_not_allowed(fields: dict[str, Any], count: int, text: str) -> None:
    assert lines_of(fields, count=count) == [text]


@pytest.mark.parametrize("count", [MAX_COLLECTIVES, MAX_COLLECTIVES + 1, MAX_COLLECTIVES + 3])
def test_many_collectives(count: int) -> None:
    lines = lines_of(*[{}] * count)
    more = [f"and {count - MAX_COLLECTIVES} more"] if count > MAX_COLLECTIVES else []
    assert lines[MAX_COLLECTIVES:] == more


def test_why_they_are_there() -> None:
    """The operation, and what would do without; of many the first."""
    (_, operation) = lines_of({"op_name": "jit(f)/dot"})
    assert operation == "  for jit(f)/dot"
    (_, because) = lines_of({}, causes=1)
    assert because.startswith("  because dot_general (model.py:7): partitioned without")
    many = lines_of({}, causes=MAX_CAUSES + 1)
    assert len(many) == 1 + 2 * MAX_CAUSES
    assert many[2].startswith("  to choose how it is partitioned")


@pytest.mark.parametrize(("line", "text"), [(0, ""), (1, ": first = 1"), (2, ": second = 2"), (3, ""), (4, "")])
def test_the_line_of_the_file(tmp_path: Path, line: int, text: str) -> None:
    """Where it has one: a file may have become shorter."""
    path = tmp_path / "model.py"
    path.write_text("first = 1\n  second = 2\n")
    source = SourcePosition.exact((Frame(str(path), "step", line),))
    assert lines_of({"source": source})[1:] == [f"  {path}:{line}, in step{text}"]
    (_, gone) = lines_of({"source": SourcePosition.exact((Frame(str(tmp_path / "no.py"), "step", 1),))})
    assert gone.endswith("no.py:1, in step")
