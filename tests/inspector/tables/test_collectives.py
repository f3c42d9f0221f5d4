"""The table of collectives: which are one row, what their heading adds up, and what is said where there are none."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import pytest
from shardscope.inspector.capture.model import STAGES, Capture, Stage
from shardscope.inspector.ir.types import ArrayType
from shardscope.inspector.render.table import Table, amount_in, pieces
from shardscope.inspector.render.tables.collectives import MAX_UNCOUNTED, causes, collectives, programs
from shardscope.inspector.report import Collective, SourcePosition, UncountedCommunication
from shardscope.inspector.report.cost import Estimate
from shardscope.inspector.report.report import OnDemand
from shardscope.parsers.source import Source, Span

from .by_hand import at, axes, collective, column, report, texts, total

F32 = ArrayType("f32", (4,))
RUNS = STAGES["hlo"].title


def numbered(members: Iterable[Collective]) -> tuple[Collective, ...]:
    return tuple(
        type(each)(
            **{name: getattr(each, name) for name in each.__struct_fields__} | {"span": Span(number, number + 1)}
        )
        for number, each in enumerate(members)
    )


def table_of(*members: Collective, **fields: Any) -> Table:
    return collectives(report(collectives=members, **fields), "hlo", fields.pop("unfolded", ()))


def uncounted(does: Any, name: str = "k", **fields: Any) -> UncountedCommunication:
    return UncountedCommunication(**{"name": name, "does": does, "type": None, "source": SourcePosition(), **fields})


def test_collectives_that_are_alike_are_one_row() -> None:
    """The largest total first; those of another program are not listed."""
    small = collective(source=at(7), operand_types=(F32,), result_types=(F32,))
    members = numbered(
        (
            small,
            collective(kind="all-gather", wire_bytes=None, executions=None, origin="compiler", direction="unknown"),
            small,
            collective(
                kind="all-to-all", wire_bytes=80, executions=None, most_executions=2, origin="unknown", axes=None
            ),
            collective(
                kind="reduce-scatter", executions=3, origin="partitioner", direction="backward", source=at(8, 9)
            ),
            collective(stage="stablehlo"),
        )
    )
    assert texts(table_of(*members)) == [
        ["", "reduce-scatter", "tp", "", "144 B", "", "48 B", "3", "partitioner", "bwd", "model.py:8 step"],
        ["2×", "all-reduce", "tp", "f32[4]", "96 B", "", "48 B", "1", "user", "fwd", "model.py:7 step"],
        ["", "all-gather", "tp", "", "?", "", "?", "?", "compiler", "", ""],
        ["", "all-to-all", "?", "", "≤ 160 B", "", "80 B", "≤ 2", "", "fwd", ""],
    ]
    table = table_of(*members[:1], members[4])
    assert column(table, "share") == ["75%", "25%"]
    assert [amount_in(row.cells[7]) for row in table.rows] == [3, 1]
    assert [[piece.role for piece in pieces(row.cells[8])] for row in table_of(*members).rows] == [
        ["warning"],
        [""],
        ["warning"],
        [""],
    ]
    assert table.selection(table.rows[0].value) is members[4]
    assert table.selection(None) is None


def test_a_row_is_unfolded_into_its_members() -> None:
    members = numbered(
        [*(collective(name=f"r.{number}", source=at(7)) for number in range(3)), collective(kind="all-gather")]
    )
    found = report(collectives=members)
    for key in ((), [("hlo", 3)], [("other", 0)]):
        assert column(collectives(found, "hlo", key), "") == ["3×", ""]
    unfolded = collectives(found, "hlo", [("hlo", 0)])
    assert column(unfolded, "") == ["┌", "│", "│", ""]
    assert column(unfolded, "total") == ["48 B"] * 4
    assert column(unfolded, "from") == [*(f"r.{number}  model.py:7 step" for number in range(3)), ""]
    assert [row.value for row in unfolded.rows] == [(each,) for each in members]
    assert [pieces(row.cells[0])[0].role for row in unfolded.rows] == ["strong", "aside", "aside", "strong"]


def test_estimated_times() -> None:
    """A column where one is known; of all that are in a row, in all of their executions."""
    known = Estimate(2.0, "chip", "t", ())
    table = table_of(collective(estimate=known, executions=3), collective(kind="all-gather"))
    assert column(table, "est.") == ["6 s", "?"]
    assert {len(row.cells) for row in table.rows} == {len(table.columns)}
    without = table_of(collective())
    assert "est." not in [each.title for each in without.columns]
    assert {len(row.cells) for row in without.rows} == {len(without.columns)}


@pytest.mark.parametrize(
    ("sizes", "text", "said"),
    [
        ([48, 16], b"", "2, 64 B sent"),
        ([48] * 1200, b"", "1,200, 56.2 KiB sent"),
        ([48, None], b"", "2, at least 48 B sent"),
        ([None], b"", "1, unknown bytes sent"),
        ([48], b"?", "1, at least 48 B sent"),
    ],
)
def test_what_all_send(sizes: list[int | None], text: bytes, said: str) -> None:
    """At least, where the size of one is not known, or a text could not be read to its end."""
    capture = Capture(stages=(Stage("hlo", "hlo", Source("t", text)),)) if text else Capture()
    table = table_of(*numbered(collective(wire_bytes=size) for size in sizes), capture=capture)
    assert table.heading == f"{RUNS}: {said} per device per step"


def test_what_all_send_is_what_the_overview_says() -> None:
    """Where it adds up this program: an upper bound too."""
    branch = collective(executions=None, most_executions=1)
    known = {"communication": (total(branch, wire_bytes=None, most_bytes=48),), "most_sent": 48}
    assert table_of(branch, **known).heading == f"{RUNS}: 1, at most 48 B sent per device per step"
    other = {"communication": (total(collective(stage="stablehlo"), wire_bytes=None),), "most_sent": 48}
    assert table_of(branch, **other).heading == f"{RUNS}: 1, unknown bytes sent per device per step"
    assert table_of().heading == RUNS


@pytest.mark.parametrize(
    ("communication", "said"),
    [
        (
            uncounted("copy", type=F32, axes=axes("x", "y"), source=at(7)),
            "kernel k copies f32[4] to another device along x, y (model.py:7)",
        ),
        (uncounted("copy"), "kernel k copies data to another device"),
        (uncounted("signal", axes=axes("x")), "kernel k signals another device along x"),
        (uncounted("host", type=F32), "k is a transfer to or from the host of f32[4]"),
        (uncounted("host", source=at(7)), "k is a transfer to or from the host (model.py:7)"),
        (uncounted("unknown"), "custom call k may communicate"),
    ],
)
def test_communication_without_a_collective(communication: UncountedCommunication, said: str) -> None:
    alone = table_of(uncounted=(communication, communication))
    assert alone.empty_text == f"no collectives, but {said}"
    beside = table_of(collective(), uncounted=(communication,))
    assert beside.heading == f"{RUNS}: 1, 48 B sent per device per step; not counted: {said}"


@pytest.mark.parametrize("count", [MAX_UNCOUNTED, MAX_UNCOUNTED + 1, MAX_UNCOUNTED + 2])
def test_much_communication_without_a_collective(count: int) -> None:
    table = table_of(uncounted=tuple(uncounted("unknown", f"k{number}") for number in range(count)))
    said = ", ".join(f"custom call k{number} may communicate" for number in range(MAX_UNCOUNTED))
    more = f", and {count - MAX_UNCOUNTED} more" if count > MAX_UNCOUNTED else ""
    assert table.empty_text == f"no collectives, but {said}{more}"


HLO = b"HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
MLIR = b"""module @m {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    return %arg0 : tensor<f32>
  }
}
"""


@pytest.mark.parametrize(
    ("names", "partitions", "said"),
    [
        ((), 4, "not known: there is neither StableHLO nor HLO here"),
        (("hlo",), 4, "No collectives."),
        (("stablehlo",), 1, "No collectives."),
        (("stablehlo",), 2, "none; those that the partitioner inserts are not here"),
        (("stablehlo", "hlo"), 4, "No collectives."),
        (("broken",), 4, "No collectives in what could be read."),
    ],
)
def test_no_collectives(names: tuple[str, ...], partitions: int, said: str) -> None:
    """None in what is not partitioned yet, or in what could not be read, does not mean that there are none."""
    known = {
        "hlo": Stage("hlo", "hlo", Source("t", HLO)),
        "stablehlo": Stage("stablehlo", "mlir", Source("t", MLIR)),
        "broken": Stage("hlo", "hlo", Source("t", b"?")),
    }
    found = report(capture=Capture(stages=tuple(map(known.__getitem__, names))), partitions=partitions)
    table = collectives(found)
    assert table.empty_text == said
    assert bool(table.heading) == bool(names)
    assert programs(found) == sorted(set(names) & {"hlo", "stablehlo"}) or names == ("broken",)


def test_other_texts_without_a_program() -> None:
    capture = Capture(stages=(Stage("jaxpr", "jaxpr", Source("t", b"{ lambda ; . let  in () }")),))
    table = collectives(report(capture=capture))
    assert (table.heading, table.empty_text) == ("Collectives", "not known: there is neither StableHLO nor HLO here")


def test_why_inserted_collectives_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those of what runs that the source does not write; those with one reason together, the largest sum first."""
    module = import_module(collectives.__module__)
    reasons = {7: "A", 8: "AB", 9: "ABC", 10: "ABCD", 11: "", 12: "C"}
    asked = OnDemand(causes=lambda each: reasons[each.source.line])  # type: ignore[index, arg-type, return-value]
    monkeypatch.setattr(module, "cause_line", lambda cause, _: f"because of {cause}")
    monkeypatch.setattr(module, "remedy_line", lambda cause, _: "" if cause == "C" else "do this")

    def inserted(line: int, **fields: Any) -> Collective:
        return collective(source=at(line), **{"origin": "partitioner", **fields})

    listed = (
        inserted(7),
        inserted(7, kind="all-gather"),
        inserted(7, kind="all-gather"),
        inserted(8, wire_bytes=145),
        inserted(9, wire_bytes=1),
        inserted(10, wire_bytes=2),
        inserted(11),
        inserted(12, wire_bytes=None),
        inserted(12, stage="stablehlo"),
        inserted(12, origin="user"),
        inserted(12, origin="autodiff"),
    )
    table = causes(report(collectives=listed, on_demand=asked))
    both = "because of A\ndo this\nbecause of B"
    assert texts(table) == [
        ["all-reduce tp ", both],
        ["all-reduce tp , 2× all-gather tp ", "because of A\ndo this"],
        ["all-reduce tp ", f"{both}\nand 2 more operations: combined into one collective"],
        ["all-reduce tp ", f"{both}\nand 1 more operation: combined into one collective"],
        ["all-reduce tp ", "because of C"],
    ]
    assert table.heading
    assert causes(report(collectives=listed[-3:], on_demand=asked)).heading == ""


def test_one_collective_alone_is_not_unfolded() -> None:
    table = collectives(report(collectives=(collective(),)), "hlo", [("hlo", 0)])
    assert (column(table, ""), column(table, "from")) == ([""], [""])
