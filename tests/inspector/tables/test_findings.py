"""Findings as rows: which are alike, which come first, and what is said of their fixes and of what these save."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from shardscope.inspector.capture.model import Capture, Failure, Stage
from shardscope.inspector.render.finding_facts import (
    MAX_RELATED,
    counted,
    evidence,
    experiment_text,
    fix_facts,
    fixes_shown,
    notes_text,
    suppressed_by,
    verdict,
)
from shardscope.inspector.render.table import pieces
from shardscope.inspector.render.tables.findings import findings, matters
from shardscope.inspector.report import (
    Edit,
    Experiment,
    Explanation,
    Finding,
    FindingPlace,
    Fix,
    Measured,
    Suppressed,
    Suppression,
)
from shardscope.parsers.source import Source

from .by_hand import at, axes, finding, report, texts

EDITS = (Edit("/code/model.py", 1, 0, 1, 1, "y"),)
WORKS, FAILS = Experiment("tried", values="equal"), Experiment("not helping", "it is still there")


def short(*found: Finding) -> list[list[str]]:
    return texts(matters(report(findings=found)))


def test_findings_that_are_alike_are_one_row() -> None:
    """They differ in the numbers of their subject alone; notes are not listed."""
    one = finding(subject="layers[0]['w']")
    others = (
        finding(subject="layers[12]['w']"),
        finding(subject="layers[0]['v']"),
        finding(8, subject="layers[0]['w']"),
        finding(subject="layers[0]['w']", axes=axes("dp")),
        finding(subject="layers[0]['w']", rule="SS02"),
        finding(subject="layers[0]['w']", severity="error"),
        finding(severity="info"),
    )
    found = short(one, *others)
    assert sorted(row[1] for row in found) == ["2 × SS01 slug", *["SS01 slug"] * 4, "SS02 slug"]
    assert found[0][0] == "error"
    assert short(finding(0))[0][2] == "a sum"
    assert matters(report(findings=(one,))).heading
    assert not matters(report(findings=others[-1:])).heading


def test_what_costs_most_comes_first() -> None:
    """Errors, then time, then bytes, of all that are alike together; equal ones in the order of the rules."""
    ordered = [
        [finding(1, severity="error")],
        [finding(2, saved_seconds=2.0, saved_bytes=1, subject="1"), finding(2, saved_seconds=2.0, subject="2")],
        [finding(3, saved_seconds=3.0, saved_bytes=9)],
        [finding(4, saved_bytes=5, subject="1"), finding(4, saved_bytes=5, subject="2")],
        [finding(5, saved_bytes=6)],
        [finding(6, saved_bytes=1)],
        [finding(7)],
    ]
    places = [f"model.py:{line}" for line in range(1, 8)]
    for number, order in enumerate(permutations(ordered)):
        if number % 501 == 0:
            assert [row[2] for row in short(*(each for group in order for each in group))] == places
    assert [row[2] for row in short(finding(9), finding(7), finding(8))] == ["model.py:9", "model.py:7", "model.py:8"]


@pytest.mark.parametrize(
    ("savings", "text"),
    [
        ([(None, None)], ""),
        ([(0, None)], ""),
        ([(5, None)], "saves 5 B per device per step"),
        ([(5, 0.0)], "saves 5 B per device per step"),
        ([(5, 0.5)], "saves 5 B per device per step, est. 500 ms"),
        ([(5, 2.0), (6, 1.0)], "saves 11 B per device per step, est. 3 s"),
        ([(5, 2.0), (6, None)], "saves 11 B per device per step"),
        ([(5, 2.0), (None, 1.0)], ""),
    ],
)
def test_savings_of_a_row(savings: list[tuple[int | None, float | None]], text: str) -> None:
    """No sum of what is not known of each."""
    found = (finding(subject=str(n), saved_bytes=size, saved_seconds=time) for n, (size, time) in enumerate(savings))
    assert [row[3] for row in short(*found)] == [text]


def test_a_fix_is_said_once() -> None:
    """By the finding that costs most, whatever its rule; mere words by the first finding of each rule."""
    fix, other = Fix("do this", EDITS, WORKS), Fix("do this", (), None, "by hand")
    found = (finding(1, fixes=(fix,)), finding(2, fixes=(fix,), saved_bytes=9), finding(3, fixes=(fix,), rule="SS02"))
    found += (finding(4, fixes=(other,), rule="SS03"), finding(5, fixes=(other,), rule="SS03"))
    table = matters(report(findings=found))
    said = {row.cells[2].text: [each.text for each in table.details(row.value)] for row in table.rows}  # type: ignore[union-attr]
    assert said == {
        "model.py:2": ["Words.", "do this", "values equal"],
        "model.py:1": ["Words."],
        "model.py:3": ["Words."],
        "model.py:4": ["Words.", "do this"],
        "model.py:5": ["Words."],
    }
    assert table.details("nothing") == ()
    for trial, words in ((FAILS, []), (None, ["do this"])):
        table = matters(report(findings=(finding(fixes=(Fix("do this", EDITS, trial),)),)))
        assert [each.text for each in table.details(table.rows[0].value)] == ["Words.", *words]


def test_rows_of_all_findings() -> None:
    """With what the screen shows of the fix; suppressed ones last and pale, and not in the number of findings."""
    by = Suppression("/code/model.py", 9, ("SS01",), "")
    known = Suppressed(finding(3), by)
    listed = (finding(saved_bytes=0), finding(2, severity="info", fixes=(Fix("a", EDITS, WORKS),)))
    table = findings(report(findings=(*listed, finding(fixes=(Fix("a", EDITS, FAILS),))), suppressed=(known,)))
    row = ["SS01", "slug", "model.py:7", "tp", "Words.", "likely"]
    assert texts(table) == [
        ["warning", *row, "0 B", ""],
        ["info", *row[:2], "model.py:2", *row[3:], "", "tried"],
        ["warning", *row, "", ""],
        ["suppressed", *row[:2], "model.py:3", *row[3:], "", ""],
    ]
    assert [pieces(each.cells[0])[0].role for each in table.rows] == ["warning", "aside", "warning", "aside"]
    assert [pieces(each.cells[-1])[0].role for each in table.rows[1:3]] == ["good", "aside"]
    assert {piece.role for cell in table.rows[3].cells for piece in pieces(cell)} == {"aside"}
    assert (table.total, table.heading) == (3, "Findings: 2 warnings, 1 note, 1 suppressed")
    assert [table.selection(each.value) for each in table.rows] == [
        *(each.value for each in table.rows[:3]),
        finding(3),
    ]
    assert table.details(known)[0].text == "in model.py:9: no reason given"
    assert table.details(None) == ()
    assert findings(report(suppressed=(known,))).heading
    assert not findings(report()).heading


def test_no_findings_in_what_could_be_read() -> None:
    """Where a text could not be read to its end, there may be others."""
    for text, said in (
        (b"HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n", ""),
        (b"?", " in what could be read"),
    ):
        capture = Capture(stages=(Stage("hlo", "hlo", Source("t", text)),))
        assert findings(report(capture=capture)).empty_text == f"No findings{said}."
    failed = Capture(failure=Failure("function", "refused", "compile"))
    assert findings(report(capture=failed)).empty_text == "No findings in what was captured."


def test_details_of_a_finding() -> None:
    found = finding(fixes=(Fix("do this"),), evidence=(("sent", "5 B"),), saved_bytes=5, saved_seconds=2.0)
    table = findings(report(findings=(found,)))
    assert [(each.label, each.text) for each in table.details(found)] == [
        ("idea", "do this (not tried)"),
        ("sent", "5 B"),
    ]


def test_what_is_known_of_a_fix() -> None:
    assert fix_facts(finding()) == []
    works, fails, hope = Fix("a", EDITS, WORKS), Fix("b", EDITS, FAILS), Fix("c", why="it is hard")
    both = finding(fixes=(works, fails, hope))
    idea, shown = ("idea", "c (not tried: it is hard)"), [("fix", "a"), ("tried", "values equal")]
    assert fix_facts(both) == [*shown, idea, ("not helping", "b: it is still there")]
    assert fix_facts(both, in_full=False) == shown
    assert fix_facts(finding(fixes=(fails, hope)), in_full=False) == [("idea", "c")]
    assert fix_facts(finding(fixes=(fails,)), in_full=False) == []
    assert fix_facts(finding(fixes=(hope, Fix("c", EDITS, why="it is hard")))) == [idea]


@pytest.mark.parametrize("count", [0, 1, MAX_RELATED, MAX_RELATED + 1, MAX_RELATED + 3])
def test_other_places_are_named_once(count: int) -> None:
    named = [f"model.py:{line}" for line in range(1, count + 1)]
    related = tuple(FindingPlace("also", at(line)) for line in range(1, count + 1) for _ in range(2))
    text = "; ".join(f"also {each}" for each in named[:MAX_RELATED])
    more = f" and {count - MAX_RELATED} more" * (count > MAX_RELATED)
    assert evidence(finding(related=related)) == ([("see", text + more)] if count else [])


@pytest.mark.parametrize(
    ("before", "after", "values", "text"),
    [
        ({}, {}, "not compared", ""),
        ({}, {}, "equal", "values equal"),
        ({"bytes": 5 << 20}, {"bytes": 0}, "equal", "5 MiB → 0 B sent, values equal"),
        ({"bytes": 4 << 20}, {"bytes": 3 << 20}, "close", "4 → 3 MiB sent, values close"),
        ({"bytes": 5}, {}, "not compared", ""),
        ({"seconds": 2.0}, {"seconds": 1e-6}, "not compared", "est. 2 s → 1 µs, values not compared"),
        ({"memory": 2048}, {"memory": 1024}, "equal", "memory 2 → 1 KiB, values equal"),
        ({"memory": 2048}, {"memory": 2040}, "equal", "values equal"),
        ({"flops": 2000}, {"flops": 1000}, "equal", "2 k → 1 k FLOP, values equal"),
    ],
)
def test_what_came_of_trying_a_fix(before: dict[str, Any], after: dict[str, Any], values: Any, text: str) -> None:
    done = Experiment("tried", before=Measured(**before), after=Measured(**after), values=values)
    assert experiment_text(done) == text


def test_a_trial_says_which_step_it_is_of() -> None:
    done = Experiment(
        "tried", before=Measured(bytes=4 << 20), after=Measured(bytes=3 << 20), values="equal", is_next=True
    )
    assert experiment_text(done) == "4 → 3 MiB sent, from the second step on, values equal"


def test_findings_are_counted_by_severity() -> None:
    by = Suppressed(finding(), Suppression("/code/model.py", 9, ("SS01",), "meant"))
    notes = (finding(severity="info"), finding(severity="info", rule="SS23"), finding(severity="info"))
    found = report(findings=(finding(severity="error"), finding(), finding(), *notes), suppressed=(by, by))
    assert counted(found) == "1 error, 2 warnings, 3 notes, 2 suppressed"
    assert notes_text(found) == "3 notes (SS01 × 2, SS23), 2 suppressed"
    assert (counted(report()), notes_text(report(findings=(finding(),)))) == ("", "")
    assert notes_text(report(findings=notes[:1])) == "1 note (SS01)"
    assert suppressed_by(by.by) == "in model.py:9: meant"


def test_fixes_of_what_fails() -> None:
    """Those that work, or all if none does; each with what it does to the numbers."""
    works = [
        Fix(values, EDITS, Experiment("tried", "", values=values, changes=("a",))) for values in ("equal", "close")
    ]  # type: ignore[arg-type]
    unknown, failing, untried = Fix("u", EDITS, Experiment("tried")), Fix("f", EDITS, FAILS), Fix("n")
    assert [verdict(each) for each in (*works, unknown, failing, untried)] == [
        "tried: runs, and gives the same values as on one device",
        "tried: runs, and gives the same values as on one device",
        "tried: runs; no values to compare",
        "tried, refused: it is still there",
        "idea, not tried",
    ]
    assert list(fixes_shown(Explanation("t", fixes=(failing, works[0], untried)))) == [works[0]]
    assert list(fixes_shown(Explanation("t", fixes=(failing, untried)))) == [failing, untried]
