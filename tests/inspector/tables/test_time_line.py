"""The time line of a step: which stretches it has, where their bars are, and how much memory is alive."""

from __future__ import annotations

import math
from typing import Any

import pytest
from shardscope.inspector.render.table import Piece, Table
from shardscope.inspector.render.tables.timeline import LEVELS, WIDTH, timeline_table
from shardscope.inspector.report.cost import FunctionCost
from shardscope.inspector.report.places import StagePlace
from shardscope.inspector.report.report import OnDemand
from shardscope.inspector.report.timeline import Activity, Timeline
from shardscope.parsers.hlo import Instruction, parse_module
from shardscope.parsers.source import Source

from .by_hand import collective, column, of_step, report

HLO = b"""HloModule m

ENTRY e {
  p = f32[2] parameter(0)
  a = f32[2] add(p, p)
  w = f32[2] while(a)
  ROOT n = f32[2] negate(w)
}
"""
P, ADD, WHILE, NEGATE = parse_module(Source("m", HLO)).computations[0].instructions


def activity(start: float, end: float, instruction: Instruction = ADD, **fields: Any) -> Activity:
    return Activity(**{"lane": "compute", "instruction": instruction, "start": start, "end": end, **fields})


def drawn(found: Timeline | None, **fields: Any) -> Table:
    return timeline_table(report(on_demand=OnDemand(timeline=lambda: found), **fields))


def lines(*activities: Activity, **fields: Any) -> Table:
    found = Timeline(**{"chip": "v5p", "total": 20.0, "exposed": 0.0, "activities": activities, **fields})
    return drawn(found)


def test_computing_is_one_stretch_between_transfers() -> None:
    """A copy that is hidden does not divide it, a loop with a transfer in it has its first round below it."""
    waits = activity(4, 6, NEGATE, lane="links", exposed=1.0, collectives=(collective(),))
    inside = (activity(0, 1), activity(1, 2, lane="copies", exposed=0.5), activity(2, 3, NEGATE))
    table = lines(
        activity(0, 1, lane="copies"),
        activity(0, 2),
        activity(2, 4, NEGATE),
        waits,
        activity(6, 8, WHILE, rounds=7, inside=(activity(0, 1), activity(0, 1, NEGATE))),
        activity(8, 14, WHILE, rounds=None, inside=inside),
        activity(14, 15, lane="links", collectives=(collective(axes=None), collective()), exposed=0.0),
    )
    assert list(zip(*(column(table, title) for title in ("starts", "takes", "waits", "axes")), strict=True)) == [
        ("0 ns", "4 s", "", ""),
        ("4 s", "2 s", "1 s", "tp"),
        ("6 s", "2 s", "", ""),
        ("8 s", "6 s", "", ""),
        ("8 s", "1 s", "", ""),
        ("9 s", "1 s", "500 ms", ""),
        ("10 s", "1 s", "", ""),
        ("14 s", "1 s", "", ""),
    ]
    assert column(table, "what") == [
        "compute (2 instructions)",
        "all-reduce",
        "loop, 7 rounds",
        "loop, ? rounds",
        "  compute (a)",
        "  copy between memories",
        "  compute (n)",
        "all-reduce ? and 1 more",
    ]
    bars = [row.cells[3] for row in table.rows]
    assert [each.role for each in bars if isinstance(each, Piece)] == [
        *("good", "warning", "good", "good", "good", "warning", "good", "aside")
    ]
    selected = [table.selection(row.value) for row in table.rows]
    assert selected[:2] == [StagePlace("hlo", ADD.span.start), collective()]
    assert table.selection(None) is None
    assert table.selection(NEGATE) == StagePlace("hlo", NEGATE.span.start)


def test_only_one_operation_has_a_line() -> None:
    """That of a stretch of several would be that of one of them."""
    text = HLO.replace(b"add(p, p)", b'add(p, p), metadata={source_file="/code/model.py" source_line=7}')
    add = parse_module(Source("m", text)).computations[0].instructions[1]
    assert column(lines(activity(0, 2, add)), "from") == ["model.py:7"]
    assert column(lines(activity(0, 2, add), activity(2, 4, add)), "from") == [""]


def test_bars_are_where_the_time_is() -> None:
    """At least one sign wide, and never beyond the end of the step."""
    spans = [(0.0, 0.1), (5.0, 8.0), (19.0, 20.0), (19.9, 20.0), (20.0, 20.0), (0.0, 20.0), (3.4, 5.0)]
    table = lines(
        *(activity(start, end, lane="links", exposed=0.01, collectives=(collective(),)) for start, end in spans),
    )
    bars = column(table, "")
    assert {len(bar) for bar in bars} == {WIDTH}
    drawn_at = [(bar.index("█"), bar.count("█")) for bar in bars]
    assert drawn_at == [(0, 1), (5, 3), (19, 1), (19, 1), (19, 1), (0, 20), (3, 2)]
    assert lines(activity(0, 0), total=0.0).rows[0].minor is False


@pytest.mark.parametrize(("seconds", "minor"), [(0.019, True), (0.02, False), (0.021, False)])
def test_documents_leave_out_what_is_brief(seconds: float, minor: bool) -> None:
    """Less than a thousandth of the step."""
    (row,) = lines(activity(0.0, seconds)).rows
    assert row.minor == minor


@pytest.mark.parametrize("sizes", [(0, 4, 2, 1, 3), (0, 7, 1, 3, 5), (0, 1, 0, 1, 0)])
def test_memory_is_drawn_below_the_peak(sizes: tuple[int, ...]) -> None:
    """In each column the most that is alive in that part of the step, in eighths of the peak, begun ones too."""
    curve = tuple(zip((0.0, 5.0, 6.5, 10.0, 20.0), sizes, strict=True))
    peak = max(sizes)
    table = lines(activity(0, 20), memory=curve, at_peak=ADD)
    assert table.rows[0].value is ADD
    (bar,) = column(table, "")[:1]
    expected = []
    for part in range(WIDTH):
        ends = [*(moment for moment, _ in curve[1:]), 20.0]
        alive = [
            size
            for (start, size), end in zip(curve, ends, strict=True)
            if min(int(start), WIDTH - 1) <= part <= min(int(end), WIDTH - 1)
        ]
        expected.append(LEVELS[max(math.ceil(8 * max(alive) / peak) - 1, 0)])
    assert bar == "".join(expected)
    assert column(table, "what")[0] == f"peak {peak} B of live values"
    for fields in ({"memory": ((0.0, 0),)}, {"memory": ((0.0, 4),), "total": 0.0}, {}):
        assert len(lines(activity(0, 20), **fields).rows) == 1


@pytest.mark.parametrize(
    ("exposed", "step", "said"),
    [
        (0.0, None, "20 s, nothing exposed"),
        (0.5, None, "20 s, 500 ms exposed"),
        (0.5, of_step(8.0), "20 s, 500 ms exposed"),
        (0.0, of_step(30.0), "30 s, nothing exposed"),
        (0.0, of_step(8.0, ("a",)), "at least 20 s"),
        (0.5, of_step(30.0, ("a",)), "at least 30 s, 500 ms exposed"),
    ],
)
def test_the_heading_of_the_time_line(exposed: float, step: FunctionCost | None, said: str) -> None:
    """Bytes or operations of unknown time bound the step, too; what is exposed of it may be unknown then."""
    found = Timeline("v5p", 20.0, exposed, (activity(0, 20),))
    assert drawn(found, cost=step).heading == f"Time line of a step on v5p (cost model): {said}"


def test_no_time_line() -> None:
    nothing = lines()
    assert (nothing.heading, nothing.empty_text) == ("", "The program takes no time.")
    unknown = drawn(None)
    assert (unknown.rows, unknown.heading) == ((), "")
    assert unknown.empty_text.startswith("Not available")
