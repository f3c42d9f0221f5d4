"""The tables of a run, and of what differs from a run on one device."""

from __future__ import annotations

from typing import Any

import pytest
from shardscope.inspector.capture.model import (
    Capture,
    Execution,
    OutputSummary,
    Subject,
)
from shardscope.inspector.capture.protocol.values import Apart, Probe, Reference, Shard, Timing
from shardscope.inspector.ir.types import JaxType
from shardscope.inspector.render.table import Table, amount_in, pieces
from shardscope.inspector.render.tables.execution import MAX_VALUE_CHARACTERS, live, not_run, times
from shardscope.inspector.render.tables.reference import deviations, differing_text, equal_text, reference
from shardscope.inspector.render.tables.value_sites import value_sites
from shardscope.inspector.report import ProbedValue

from .by_hand import at, collective, column, report, texts

SUBJECT = Subject("f", "/code/model.py", "cpu", "cpu", 4)


def of_run(**fields: Any) -> Table:
    return live(report(capture=Capture(execution=Execution(**fields))))


def test_outputs_of_a_run() -> None:
    """Values on one line, cut off where they are long, and all of them below."""
    long = "1" * MAX_VALUE_CHARACTERS
    table = of_run(
        outputs=(
            OutputSummary("[0]", "f32[2]", "P('x')", 0.0, 1.23456, 2.0, 0, "[1.\n 2.]"),
            OutputSummary("[1]", "key<fry>[]", None),
            OutputSummary("[2]", "f32[]", None, non_finite=3, values=long),
            OutputSummary("[3]", "f32[]", None, values=f"{long}2"),
        )
    )
    assert texts(table) == [
        ["[0]", "f32[2]", "P('x')", "0", "1.235", "2", "0", "[1. 2.]"],
        ["[1]", "key<fry>[]", "", "", "", "", "", ""],
        ["[2]", "f32[]", "", "", "", "", "3", long],
        ["[3]", "f32[]", "", "", "", "", "", f"{long}…"],
    ]
    assert [pieces(row.cells[6])[0].role for row in table.rows] == ["aside", "aside", "error", "aside"]
    assert [amount_in(cell) for cell in table.rows[0].cells[3:7]] == [0.0, 1.23456, 2.0, 0]
    assert [[each.text for each in table.details(row.value)] for row in table.rows] == [
        ["[1.\n 2.]"],
        [],
        [long],
        [f"{long}2"],
    ]
    assert table.details("nothing") == ()


def test_a_run_and_none() -> None:
    assert of_run().heading == "Outputs of the run"
    assert of_run(seeded_inputs=True).heading == "Outputs of the run on synthetic inputs"
    for capture, said in (
        (Capture(execution=Execution()), ""),
        (Capture(), "Dumps are not executed."),
        (Capture(subject=SUBJECT), "The program was not executed."),
    ):
        assert not_run(report(capture=capture)) == said
    assert live(report()).heading == ""


def test_measured_times() -> None:
    """The slowest first, by its slowest device; the one that begins last is named."""
    measured = [("a", 0, 2.0, 0.0), ("a", 1, 1.0, 3.0), ("b", 0, 4.0, 0.5), ("b", 1, 0.1, 0.0), ("c", 0, 3.0, 0.0)]
    timings = tuple(Timing(name, device, 5, 2, seconds, late) for name, device, seconds, late in measured)
    members = (collective(name="b", source=at(7)), collective(name="a", source=at(8), stage="stablehlo"))
    table = times(report(capture=Capture(collective_times=timings), collectives=members))
    assert texts(table) == [
        ["b", "2", "100 ms", "4 s", "500 ms", "device 0", "model.py:7"],
        ["c", "2", "3 s", "3 s", "0 ns", "device 0", ""],
        ["a", "2", "1 s", "2 s", "3 s", "device 1", ""],
    ]
    assert table.heading == "Measured times in 5 runs, waiting for other devices included"
    assert [row.value for row in table.rows] == [members[0], None, None]
    assert times(report()).heading == ""


def apart(distance: float, position: int = 0, **fields: Any) -> Apart:
    known = {"path": ("e",), "when": "after", "iteration": (), "coordinates": ()}
    return Apart(**{**known, "position": position, "distance": distance, **fields})


def value(position: int, **fields: Any) -> ProbedValue:
    shards = tuple(Shard(number, (number // 2, number % 2), "d") for number in range(4))
    known = {"path": ("e",), "when": "after", "position": position, "type": "f32[]", "dtype": "float32", "shape": ()}
    probe = Probe(**{**known, "axes": ("x", "y"), "shards": shards, **fields})
    return ProbedValue(probe, JaxType("f32[]"), f"v{position}", "add", (), at(7))


def against_one(*differs: Apart, **fields: Any) -> Any:
    probes = fields.pop("probes", tuple(map(value, range(8))))
    return report(
        capture=Capture(subject=fields.pop("subject", None), reference=Reference(40, differs, **fields)), probes=probes
    )


def test_the_first_that_differs_and_then_the_farthest() -> None:
    found = against_one(apart(2.0, 1), apart(5.0, 2), apart(9.0, 3), apart(7.0, 2), apart(1.5, 9))
    table = reference(found)
    assert texts(table) == [
        ["▲ first", "v1 = add", "", "all", "2× the rounding tolerance", "model.py:7"],
        ["", "v3 = add", "", "all", "9× the rounding tolerance", "model.py:7"],
        ["", "v2 = add", "", "all", "7× the rounding tolerance", "model.py:7"],
        ["", "after 9", "", "all", "1.5× the rounding tolerance", ""],
    ]
    assert [amount_in(row.cells[4]) for row in table.rows] == [2.0, 9.0, 7.0, 1.5]
    assert table.heading == "Against a run on one device: 4 of 40 values differ, largest after the first"
    assert differing_text(found) == (
        "4 of 40 values differ from a run on one device, first v1 = add (model.py:7), by 2× the rounding tolerance"
    )


def test_how_many_differ() -> None:
    one = against_one(apart(2.0, 9), left_out=3)
    assert differing_text(one) == (
        "more than 1 of 40 values differs from a run on one device, first after 9, by 2× the rounding tolerance"
    )
    assert reference(one).heading == "Against a run on one device: more than 1 of 40 values differs"
    for none in (report(), against_one(), against_one(apart(2.0), undefined="it has randomness")):
        assert differing_text(none) == ""
        assert not reference(none).rows
    assert reference(report()).heading == ""
    assert reference(report()).empty_text == ""
    assert reference(against_one()).heading == "Against a run on one device"
    assert (
        reference(against_one()).empty_text == equal_text(Reference(40, ())) == "40 values equal to a run on one device"
    )
    assert equal_text(Reference(40, (), amplified=3)).startswith(
        "37 values equal to a run on one device, 3 apart only by"
    )
    assert reference(against_one(undefined="randomness")).empty_text == "not defined: randomness"


@pytest.mark.parametrize(
    ("distance", "text"),
    [
        (1.234, "1.23×"),
        (99.94, "99.9×"),
        (100.0, "100×"),
        (1234.0, "1,234×"),
        (999_999.0, "999,999×"),
        (1e6, "1e+06×"),
        (1e100, "1e+100×"),
        (2e100, "far off"),
        (float("inf"), "far off"),
    ],
)
def test_multiples_of_the_tolerance(distance: float, text: str) -> None:
    (found,) = deviations(against_one(apart(distance)))
    assert found.times == text
    assert found.off_by == (text if text == "far off" else f"{text} the rounding tolerance")


@pytest.mark.parametrize(
    ("iterations", "text"),
    [
        ([()], ""),
        ([(3,), (1,), (2,), (7,)], "1–3, 7"),
        ([(1, 2)], "1, 2"),
        ([(1, 2), (0, 4), (1, 2)], "0, 4 and 1 more"),
    ],
)
def test_iterations_in_which_it_differs(iterations: list[tuple[int, ...]], text: str) -> None:
    (found,) = deviations(against_one(*(apart(2.0, iteration=each) for each in iterations)))
    assert found.iterations == text


@pytest.mark.parametrize(
    ("places", "recorded", "text"),
    [
        ([()], True, "all"),
        ([(), (0, 1)], True, "all"),
        ([(0, 0), (0, 1), (1, 0), (1, 1)], True, "all"),
        ([(0, 1)], True, "device 1 x=0 y=1"),
        ([(0, 0), (0, 1), (0, 1)], True, "devices 0–1 x=0"),
        ([(5, 5)], True, "1 device"),
        ([()], False, "all"),
        ([(0, 1), (1, 0)], False, "2 devices"),
        ([(), (1, 0)], False, "2 devices"),
    ],
)
def test_devices_that_differ(places: list[tuple[int, ...]], recorded: bool, text: str) -> None:
    """Of a value that was not recorded, only their number is known."""
    differs = (apart(2.0, coordinates=each) for each in places)
    (found,) = deviations(against_one(*differs, **({} if recorded else {"probes": ()})))
    assert found.devices == text


def test_the_screen_has_the_distance_beside_the_value() -> None:
    """Of an equation's operands and results the larger one, unless one is the very first."""
    probes = (value(0), value(1), value(1, when="before"), value(2), value(0, path=(), when="output"))
    differs = (apart(2.0, 1, when="before"), apart(9.0, 1), apart(3.0, 0, path=(), when="output"))
    table = value_sites(against_one(*differs, probes=probes))
    assert column(table, "off by") == ["", "first 2×", "", "3×"]
    assert [amount_in(cell) for row in table.rows for cell in row.cells[4:5]] == [None, 2.0, None, 3.0]
    later = value_sites(against_one(differs[2], *differs[:2], probes=probes))
    assert column(later, "off by") == ["", "9×", "", "first 3×"]
    assert {len(row.cells) for row in later.rows} == {len(later.columns)}
    assert "off by" not in [each.title for each in value_sites(report(probes=probes)).columns]
