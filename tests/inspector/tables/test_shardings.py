"""The tables of shardings and of variance: which values are one row, and what is said below them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from shardscope.inspector.capture.model import Capture, Stage, Value
from shardscope.inspector.ir.types import ArrayType, JaxType
from shardscope.inspector.render.table import pieces, plain_text
from shardscope.inspector.render.tables.shardings import (
    MAX_CHAINS,
    MAX_CONFLICTS,
    MAX_REPLICATED,
    only_written,
    shardings,
    values_table,
    variance,
)
from shardscope.inspector.report import AxisEntry, ShardedValue, SourcePosition, VariableVariance
from shardscope.inspector.report.report import OnDemand
from shardscope.parsers.source import Source

from . import by_hand
from .by_hand import at, column, report, sharded, texts

MODULE = import_module(shardings.__module__)


@pytest.fixture(autouse=True)
def below(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what the analyses say: reasons by value, conflicts, and the values inside."""

    def said(reasons: int = 0, conflicts: int = 0, values: tuple[ShardedValue, ...] = ()) -> None:
        asked = OnDemand(
            why=lambda value, _: tuple(f"reason {n} of {value.name}" for n in range(reasons)),  # type: ignore[arg-type, misc]
            conflicts=lambda: (*range(conflicts), *range(conflicts)),  # type: ignore[arg-type, return-value]
            values=lambda: values,
        )
        monkeypatch.setattr(by_hand, "on_demand", lambda _: asked)
        monkeypatch.setattr(MODULE, "why_line", lambda found, name, _: f"{name}: {found}")
        monkeypatch.setattr(MODULE, "conflict_lines", lambda each, _: [f"conflict {each}"])

    said()
    return said


def test_neighbours_that_differ_in_an_index_are_one_row() -> None:
    alike = [sharded(f"layers[{number}]['w']") for number in range(3)]
    others = [
        sharded("layers[3]['v']"),
        sharded("layers[3]['w']", spec="P()"),
        sharded("layers[4]['w']", requested=None),
        sharded("layers[5]['w']", agrees=None),
        sharded("layers[6]['w']", replicated_bytes=8),
        sharded("layers[7]['w']", role="output"),
        sharded("layers[8]['w']", type=ArrayType("f32", (16,))),
    ]
    table = shardings(report(shardings=(*alike, *others)))
    assert [row[:3:2] for row in texts(table)] == [["3×", "layers[*]['w']"], *(["", each.name] for each in others)]
    assert [row.value for row in table.rows] == [alike[0], *others]


def test_a_row() -> None:
    """A place is part of the name, unless it is that of an argument."""
    found = (
        sharded(source=at(7)),
        sharded("y", role="constraint", source=at(8), agrees=False, local_type=None, replicated_bytes=None),
        sharded("z", role="output", spec=None, requested=None, agrees=None, local_type=None),
    )
    table = shardings(report(shardings=found))
    assert texts(table) == [
        ["", "argument", "w", "f32[8]", "P('x')", "P('x')", "f32[2]", "0 B", "model.py:7"],
        ["", "constraint", "y (model.py:8)", "f32[8]", "P('x')", "P('x') ✗", "f32[8]", "?", "model.py:8"],
        ["", "output", "z", "f32[8]", "", "?", "?", "0 B", ""],
    ]
    assert [pieces(row.cells[5])[0].role for row in table.rows] == ["", "error", ""]


@pytest.mark.parametrize(
    ("stages", "wrong", "heading"),
    [
        ([], 0, ""),
        (["sdy"], 0, "Shardings after propagation"),
        (["stablehlo"], 0, "Shardings in StableHLO, before propagation"),
        (["stablehlo", "sdy"], 0, "Shardings after propagation"),
        (["sdy"], 1, "Shardings after propagation: 1 differs from requested (✗)"),
        (["sdy"], 2, "Shardings after propagation: 2 differ from requested (✗)"),
    ],
)
def test_the_heading(stages: list[str], wrong: int, heading: str) -> None:
    values = (*(sharded(stage=each) for each in stages), *(sharded(f"v{n}", agrees=False) for n in range(wrong)))
    found = report(shardings=values)
    assert shardings(found).heading == heading
    assert only_written(found) == ("before" in heading)


def test_what_was_requested() -> None:
    """With the layout and donation that the capture has of it, and the words for no request."""
    given = (Value("a", "f32[8]", "P('x')", True, layout="(0,)"), Value("b", "f32[8]"), Value("c", "f32[8@x]"))
    names = [sharded("a"), *(sharded(name, requested=None, agrees=None) for name in "bcd")]
    capture = Capture(arguments=given, outputs=(Value("a", "f32[8]"),))
    table = shardings(report(shardings=(*names, sharded("a", role="output")), capture=capture))
    assert column(table, "requested") == ["P('x'), layout (0,), donated", "unconstrained", "by its type", "", "P('x')"]


def test_values_one_by_one() -> None:
    """As they are at a step of the propagation, with the calls that tell lines apart."""
    listed = [sharded("a", source=at(7, 20)), sharded("b", source=at(7, 30), agrees=False)]
    table = values_table(report(), listed, lambda value: "P('y')" if value.name == "a" else "P('x')")
    assert column(table, "actual") == ["P('y')", "P('x') ✗"]
    assert pieces(table.rows[0].cells[5])[0].role == "aside"
    assert column(table, "from") == ["model.py:20 ← model.py:7", "model.py:30 ← model.py:7"]
    same = values_table(report(), listed[:1], lambda value: "P('x')")
    assert pieces(same.rows[0].cells[5])[0].role == ""
    assert column(values_table(report(), listed[:1]), "actual") == ["P('x')"]


@pytest.mark.parametrize(
    ("fields", "explained"),
    [
        ({"requested": None}, True),
        ({"agrees": False}, True),
        ({}, False),
        ({"requested": None, "role": "output"}, True),
        ({"requested": None, "role": "constraint"}, False),
        ({"agrees": False, "role": "constraint"}, False),
    ],
)
def test_reasons_for_what_was_not_requested(below: Any, fields: dict[str, Any], explained: bool) -> None:
    below(1)
    notes = [plain_text(each) for each in shardings(report(shardings=(sharded(**fields),))).notes()]
    assert notes == ["w: reason 0 of w"] * explained


@pytest.mark.parametrize("more", [0, 1, 2])
def test_how_much_is_said_below(below: Any, more: int) -> None:
    """So many reasons, and so many different conflicts; all of them in full."""
    below(MAX_CHAINS + more, MAX_CONFLICTS + more)
    table = shardings(report(shardings=(sharded(requested=None),)))
    reasons = [f"w: reason {n} of w" for n in range(MAX_CHAINS + more)]
    conflicts = [f"conflict {n}" for n in range(MAX_CONFLICTS + more)]
    plural = "s" * (more > 1)
    assert [plain_text(each) for each in table.notes()] == [
        *reasons[:MAX_CHAINS],
        *[f"and {more} more reason{plural}"] * bool(more),
        *conflicts[:MAX_CONFLICTS],
        *[f"and {more} more conflict{plural}"] * bool(more),
    ]
    assert table.notes_in_full is not None
    assert [plain_text(each) for each in table.notes_in_full()] == [*reasons, *conflicts]


def test_values_with_most_memory_in_copies(below: Any) -> None:
    """Equal ones as one line, the largest first."""
    inside = [sharded("a", replicated_bytes=n) for n in (1, 2, 3, 4, 5, 6, 0, None)]
    below(values=(*inside, sharded("a", replicated_bytes=6), sharded("b", replicated_bytes=6, source=at(7))))
    table = shardings(report())
    lines = [plain_text(each) for each in table.notes()]
    assert lines == [
        "replicated: 6 B per device each, 2 × a, f32[8] as P('x')",
        "replicated: 6 B per device, b (model.py:7), f32[8] as P('x')",
        *(f"replicated: {size} B per device, a, f32[8] as P('x')" for size in (5, 4, 3)),
    ]
    assert len(lines) == MAX_REPLICATED


def varying(**fields: Any) -> VariableVariance:
    known = {"equation": "e", "primitive": "psum", "value": "v", "type": JaxType("f32[2]"), "varying": ("x",)}
    return VariableVariance(**{**known, "unreduced": (), "reduced": (), "source": SourcePosition(), **fields})


@pytest.mark.parametrize(
    ("inferred", "note"),
    [
        ([False, False], ""),
        ([True, False], " (inferred where the check is off)"),
        ([True, True], " (inferred, as the check is off)"),
    ],
)
def test_the_heading_of_variance(inferred: list[bool], note: str) -> None:
    found = [varying(inferred=each, left=("y",)) for each in inferred]
    table = variance(report(variance=(*found[:1], varying(inferred=inferred[1]))))
    assert table.heading == f"Variance{note}: 2 values, 1 at which it changes"
    assert (table.first, [row.minor for row in table.rows]) == (0, [False, True])
    later = variance(report(variance=(varying(), *found)))
    assert later.first == 1
    quiet = variance(report(variance=(varying(), varying())))
    assert (quiet.heading, quiet.first) == ("", 0)


def test_axes_over_which_values_vary() -> None:
    def entry(axis: str, line: int, number: int | None = None) -> AxisEntry:
        return AxisEntry(axis, "e", "pcast", at(line) if line else SourcePosition(), number)

    entered = (entry("x", 7), entry("y", 7), entry("z", 8), entry("w", 0, 1))
    found = (
        varying(varying=("x", "y"), entered=entered, source=at(9)),
        varying(unreduced=("y",), reduced=("z",), left=("u", "w")),
        varying(varying=(), hidden=("x", "y")),
        varying(varying=()),
    )
    assert texts(variance(report(variance=found))) == [
        [
            "v = psum",
            "f32[2]",
            "x, y",
            "",
            "x, y by pcast model.py:7; z by pcast model.py:8; w by in_specs",
            "model.py:9",
        ],
        ["v = psum", "f32[2]", "x, y unreduced, z reduced", "u, w", "", ""],
        ["v = psum", "f32[2]", "none but may vary over x, y", "", "", ""],
        ["v = psum", "f32[2]", "none", "", "", ""],
    ]


def test_no_variance() -> None:
    capture = Capture(stages=(Stage("jaxpr", "jaxpr", Source("t", b"{ lambda ; . let  in () }")),))
    table = variance(report(capture=capture))
    assert table.empty_text == "No shard_map in this program."
    assert variance(report()).empty_text.startswith("Not available")
    assert table.selection(varying()) is None
    assert table.selection(None) is None
