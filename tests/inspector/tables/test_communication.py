"""The table of communication by strategy: what it says of each kind of total."""

from __future__ import annotations

from typing import Any

import pytest
from shardscope.inspector.ir.types import ArrayType
from shardscope.inspector.render.table import Table
from shardscope.inspector.render.tables.communication import bounded_text, communication, modules, sent_text
from shardscope.inspector.report import Collective, SourcePosition, UncountedCommunication
from shardscope.inspector.report.cost import FunctionCost

from .by_hand import at, axes, collective, column, part, report, texts, total

SYNC = {"strategy": "gradient sync"}


def table_of(*totals: Any, **fields: Any) -> Table:
    return communication(report(communication=totals, **fields))


def where(*members: Collective, **fields: Any) -> str:
    (text,) = column(table_of(total(*members, **fields)), "where")
    return text


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([(1, 1), (1, 1)], ""),
        ([(3, 3), (3, 3)], " × 3"),
        ([(1000, None)], " × 1,000"),
        ([(1, 1), (3, 3)], ", 4 executions"),
        ([(600, 1), (600, 1), (0, 0)], ", 1,200 executions"),
        ([(None, 5), (None, 2)], " in a branch"),
        ([(None, 5), (1, 1)], ", some in a branch"),
        ([(None, None)], " in a loop"),
        ([(None, None), (None, 5), (1, None)], " in a loop"),
        ([(None, 5), (1, None)], ", some in a branch"),
    ],
)
def test_executions(runs: list[tuple[int | None, int | None]], said: str) -> None:
    """A branch bounds them, a loop of unknown length does not."""
    members = [collective(executions=known, most_executions=most) for known, most in runs]
    (text,) = column(table_of(total(*members)), "collectives")
    assert text == f"{len(runs)} all-reduce{'s' * (len(runs) > 1)}{said}"


@pytest.mark.parametrize(
    ("size", "kinds", "is_complete", "text"),
    [
        (0, [], True, "0 B"),
        (0, ["all-reduce"], False, "unknown bytes"),
        (0, ["ragged-all-to-all"], False, "unknown bytes"),
        (5, ["all-reduce"], True, "5 B"),
        (5, ["all-reduce"], False, "at least 5 B"),
        (5, ["all-reduce", "ragged-all-to-all"], True, "at most 5 B"),
        (5, ["ragged-all-to-all"], False, "about 5 B"),
        (0, ["ragged-all-to-all"], True, "at most 0 B"),
    ],
)
def test_a_sum_of_what_is_known(size: int, kinds: list[Any], is_complete: bool, text: str) -> None:
    assert bounded_text(size, kinds, is_complete=is_complete) == text


@pytest.mark.parametrize(
    ("sizes", "most", "is_complete", "text"),
    [
        ([5, 3], None, True, "8 B"),
        ([5, 3], 64, True, "8 B"),
        ([5, 3], 64, False, "at least 8 B"),
        ([5, None], 64, True, "at most 64 B"),
        ([5, None], 64, False, "at least 5 B"),
        ([5, None], None, True, "at least 5 B"),
        ([None], None, True, "unknown bytes"),
        ([0, None], 0, True, "at most 0 B"),
        ([], None, True, "0 B"),
    ],
)
def test_what_a_step_sends(sizes: list[int | None], most: int | None, is_complete: bool, text: str) -> None:
    found = report(communication=tuple(total(wire_bytes=size) for size in sizes), most_sent=most)
    assert sent_text(found, is_complete=is_complete) == text


def test_shares_are_of_what_all_send() -> None:
    """No share of a sum that is not known; the upper bound of a branch."""
    assert texts(table_of(total(), total(wire_bytes=16, axes=None))) == [
        ["75%", "48 B", "tensor parallelism", "1 all-reduce", "tp", ""],
        ["25%", "16 B", "tensor parallelism", "1 all-reduce", "tp", ""],
    ]
    unknown = table_of(total(), total(wire_bytes=None, most_bytes=64), total(wire_bytes=None))
    assert column(unknown, "share") == ["", "", ""]
    assert column(unknown, "bytes") == ["48 B", "≤ 64 B", "?"]
    assert column(table_of(total(wire_bytes=0)), "share") == [""]


def test_groups_that_no_axes_form_are_counted() -> None:
    for over, text in ((None, "?"), ((), "none")):
        assert column(table_of(total(collective(axes=over), axes=over)), "over") == [text]


def test_times_are_listed_where_one_is_known() -> None:
    uncounted = UncountedCommunication("k", "copy", None, SourcePosition())
    found = table_of(total(seconds=2e-6), total(), uncounted=(uncounted,))
    assert column(found, "est.") == ["2 µs", "?", ""]
    without = table_of(total(), uncounted=(uncounted,))
    assert "est." not in [each.title for each in without.columns]
    assert {len(row.cells) for row in (*found.rows, *without.rows)} == {6, 7}


@pytest.mark.parametrize(
    ("stage", "said"), [("hlo", ""), ("hlo-spmd", "after partitioning"), ("stablehlo", "as written"), ("other", "")]
)
def test_the_heading_says_what_was_read(stage: str, said: str) -> None:
    heading = table_of(total(collective(stage=stage))).heading
    assert heading.startswith("Communication per device per step")
    assert said in heading
    assert bool(said) == (" (" in heading)


def test_no_communication_no_heading() -> None:
    assert table_of().heading == ""
    only = table_of(uncounted=(UncountedCommunication("k", "copy", None, SourcePosition()),))
    assert only.heading == "Communication per device per step"


@pytest.mark.parametrize(("step", "said"), [(3.0, True), (5.0, False), (6.0, False), (None, False)])
def test_times_that_overlap(step: float | None, said: bool) -> None:
    """The rows' times together are more than the step's only where transfers go on beside each other."""
    cost = None if step is None else FunctionCost("v5p", 0, 0, 0.0, 0.0, 0.0, step, 0.0, (), ())
    heading = table_of(total(seconds=2.0), total(seconds=3.0), total(), cost=cost).heading
    assert (" (times overlap: 5 s in all, in a step of 3 s)" in heading) == said
    assert ("overlap" in heading) == said


def test_places_by_what_is_known_of_them() -> None:
    """Modules, if all have one; else the arguments; else lines; else the operation's own name."""
    there, elsewhere = collective("attn.wq", source=at(3)), collective(source=at(5))
    assert where(there, collective("attn.wk")) == "attn.{wq,wk}"
    assert where(there, elsewhere) == "model.py:3 step, model.py:5 step"
    assert where(there, elsewhere, arguments=("w[0]", "w[1]", "b")) == "w[*], b"
    assert where(collective("0.wq", source=at(3))) == "model.py:3 step"
    assert where(collective(op_name="jit(f)/dot", source=at())) == "jit(f)/dot"
    assert where(collective()) == ""
    assert where(collective(op_name="jit(f)/dot"), **SYNC) == ""


@pytest.mark.parametrize(
    ("passes", "said"),
    [
        (["forward"], ""),
        (["backward"], " (bwd)"),
        (["forward", "backward"], " (fwd, bwd)"),
        (["backward", "backward", "recompute"], " (bwd, remat)"),
        (["unknown"], ""),
        (["unknown", "forward"], ""),
        (["unknown", "recompute"], " (remat)"),
    ],
)
def test_passes_of_a_line(passes: list[str], said: str) -> None:
    assert where(*(collective(source=at(3), direction=each) for each in passes)) == f"model.py:3 step{said}"


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, " and 1 more"), (6, " and 3 more")])
def test_a_row_names_three_lines(count: int, more: str) -> None:
    named = ", ".join(f"model.py:{line} step" for line in (1, 2, 3))
    assert where(*(collective(source=at(line)) for line in range(1, count + 1))) == f"{named}{more}"


def test_what_sends_most_is_named_first() -> None:
    """In all of its executions, one where their number is not known; unknown bytes come last."""
    sends = {1: (None, 1), 2: (10, 3), 3: (40, None), 4: (20, 1), 5: (1, 25), 6: (5, 9), 7: (1, 1)}
    members = [collective(source=at(line), wire_bytes=size, executions=runs) for line, (size, runs) in sends.items()]
    for line in (6, 3, 2, 5, 4, 7, 1):
        found = where(*members)
        assert found.startswith(f"model.py:{line} step")
        members = [each for each in members if each.source != at(line)]


def test_a_line_that_several_call_is_named_with_its_caller() -> None:
    """Also of what is a part of a combined collective."""
    one, other = at(9, 20), at(9, 30)
    alone = collective(source=one)
    both = total(alone, collective(source=other))
    (text,) = column(table_of(both, collectives=both.collectives), "where")
    assert text == "model.py:20 step, model.py:30 step"
    combined = collective(parts=(part(source=one), part(source=other)), source=at(1))
    (text,) = column(table_of(total(combined), collectives=(combined,)), "where")
    assert text == "model.py:20 step, model.py:30 step"
    (text,) = column(table_of(total(alone), collectives=(alone, combined)), "where")
    assert text == "model.py:20 step"
    (text,) = column(table_of(total(alone), collectives=(alone,)), "where")
    assert text == "model.py:9 step"


def test_gradients_among_a_loss() -> None:
    """Single numbers are not gradients; the line of a sum of many merged ones is that of one of them."""
    parts = (part("", 1, source=at(1)), part("", 4, source=at(2)))
    assert where(collective(parts=parts), **SYNC) == "model.py:2 step"
    assert where(collective(parts=parts)) == "model.py:1 step, model.py:2 step"
    named = (part("loss", 1), part("w", 4))
    assert where(collective(parts=named), **SYNC) == "w"
    merged = "jit(f)/a/b;jit(f)/c"
    assert where(collective(op_name=merged, source=at(3)), **SYNC) == ""
    assert where(collective(op_name=merged, source=at(3))) == "model.py:3 step"
    assert where(collective(op_name="jit(f)/a/b", source=at(3)), **SYNC) == "model.py:3 step"
    assert where(collective(op_name=merged, parts=parts), **SYNC) == "model.py:2 step"


def test_gradients_are_counted() -> None:
    there = collective(source=at(3))
    assert where(there, gradients=1, **SYNC) == "1 gradient: model.py:3 step"
    assert where(there, gradients=2) == "model.py:3 step, with 2 gradients"
    assert where(collective(), gradients=2) == "2 gradients"
    assert where(there, **SYNC) == "model.py:3 step"


def test_what_has_no_bytes_is_a_row_of_its_own() -> None:
    """One for what differs in its devices only."""
    f32 = ArrayType("f32", (4,))
    copy = UncountedCommunication("kernel", "copy", f32, at(3), axes("tp"), ((0, 1),))
    listed = (
        copy,
        UncountedCommunication("kernel", "copy", f32, at(3), axes("tp"), ((1, 0),), 2),
        UncountedCommunication("kernel", "copy", f32, at(4), axes("tp")),
        UncountedCommunication("kernel", "copy", f32, at(3), axes("dp")),
        UncountedCommunication("kernel", "copy", None, at(3), axes("tp")),
        UncountedCommunication("kernel", "signal", None, SourcePosition()),
        UncountedCommunication("callback", "host", None, SourcePosition()),
        UncountedCommunication("foreign", "unknown", None, SourcePosition()),
    )
    found = table_of(uncounted=listed)
    assert texts(found) == [
        ["", "not counted", "kernels", "3 remote copies of f32[4]", "tp", "kernel model.py:3"],
        ["", "not counted", "kernels", "1 remote copy of f32[4]", "tp", "kernel model.py:4"],
        ["", "not counted", "kernels", "1 remote copy of f32[4]", "dp", "kernel model.py:3"],
        ["", "not counted", "kernels", "1 remote copy", "tp", "kernel model.py:3"],
        ["", "not counted", "kernels", "1 remote signal", "", "kernel"],
        ["", "not counted", "kernels", "1 host transfer", "", "callback"],
        ["", "not counted", "may communicate", "1 custom call", "", "foreign"],
    ]
    assert found.rows[0].value is copy


def test_bytes_of_modules() -> None:
    """With what was merged of several modules, and what is of none."""
    members = (
        collective("a.x", wire_bytes=35),
        collective("a.y", wire_bytes=20),
        collective("b", wire_bytes=10, executions=2),
        collective(op_name="jit(f)/c/d;jit(f)/e", wire_bytes=24),
        collective("b", op_name="jit(f)/c/d;jit(f)/e", wire_bytes=0),
        collective(op_name="jit(f)/c", wire_bytes=1),
    )
    found = modules(report(communication=(total(*members[:2]), total(*members[2:]))))
    assert texts(found) == [
        ["55%", "55 B", "a"],
        ["35%", "35 B", "  x"],
        ["20%", "20 B", "  y"],
        ["20%", "20 B", "b"],
        ["24%", "24 B", "of several modules"],
        ["1%", "1 B", "of no module"],
    ]
    assert found.heading
    assert texts(modules(report(communication=(total(*members[:3]),))))[-1] == ["27%", "20 B", "b"]
    nowhere = modules(report(communication=(total(*members[3:4]),)))
    assert (texts(nowhere), nowhere.heading) == ([], "")
