"""A change is an improvement, or it is said why not: each reason by two reports that differ in nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shardscope.inspector.capture.model import Capture, Value
from shardscope.inspector.experiments.values import Comparison
from shardscope.inspector.experiments.verdict import CHANGED, Side, judged
from shardscope.inspector.findings.settled import ALSO, settled
from shardscope.inspector.report import Edit, Experiment, Finding, Fix, Measured, Report

from tests.inspector.tables.by_hand import axes, finding, report

FOUND = finding(expected=(100, None))
"""Of SS01, which saves bytes."""

pytestmark = pytest.mark.once


def with_results(*findings: Finding, type: str = "f32[8]") -> Report:
    return report(findings=findings, capture=Capture(outputs=(Value("result", type, None),)))


def verdict(
    after: Report, found: Finding | None = FOUND, before: Report | None = None, values: Any = "equal", **costs: Any
) -> tuple[str, str]:
    """State and reason; costs are pairs, before and after."""
    known: dict[str, Any] = {"bytes": (100, 60)} | costs
    sides = (Measured(**{name: each[n] for name, each in known.items()}) for n in (0, 1))
    reports = before or with_results(FOUND), after
    one, other = (Side.of(each, cost) for each, cost in zip(reports, sides, strict=True))
    done = judged(reports[0], one, other, Comparison(values), found)
    return done.state, done.why


HELPS = ("tried", "")


@pytest.mark.parametrize(
    ("costs", "why"),
    [
        ({}, ""),
        ({"bytes": (100, 100)}, "no fewer bytes are sent"),
        ({"bytes": (100, 101)}, "more bytes are sent"),
        ({"bytes": (None, 1)}, "no fewer bytes are sent"),
        ({"bytes": (None, 0)}, ""),
        ({"flops": (100, 121)}, "more operations are computed on each device"),
        ({"flops": (100, 120)}, ""),
        ({"flops": (100, 111), "bytes": (100, 90)}, "more operations are computed on each device"),
        ({"flops": (100, 110), "bytes": (100, 90)}, ""),
        ({"held": (100, 105)}, ""),
        ({"held": (1024, 2048)}, "arguments and results take 1 KiB → 2 KiB on each device"),
        ({"held": (1024, 2048), "memory": (100, 90)}, ""),
        ({"later": (0, 40)}, "the next step sends 40 B to reshard its arguments"),
        ({"later": (0, 39)}, ""),
        ({"later": (10, 40)}, ""),
        # On a target time decides, and bytes where it is the same.
        ({"seconds": (1.0, 1.1)}, "the step is slower on the target"),
        ({"seconds": (1.0, 0.9)}, ""),
        ({"seconds": (1.0, 0.9), "bytes": (100, 200)}, ""),
        ({"seconds": (1.0, 1.0), "bytes": (100, 100)}, "no fewer bytes are sent"),
        ({"seconds": (1.0, 1.0)}, ""),
    ],
)
def test_of_communication(costs: dict[str, Any], why: str) -> None:
    assert verdict(with_results(), **costs) == (HELPS if not why else ("not helping", why))
    assert verdict(with_results(), None, **costs) == (HELPS if not why else ("not helping", why))


@pytest.mark.parametrize(
    ("rule", "costs", "why"),
    [
        ("SS29", {"flops": (100, 50), "bytes": (100, 100)}, ""),
        ("SS29", {"flops": (100, 50), "bytes": (100, 101)}, "more bytes are sent"),
        ("SS29", {"flops": (100, 100), "bytes": (100, 100)}, "no fewer bytes are sent"),
        ("SS12", {"memory": (100, 50), "bytes": (100, 100)}, ""),
        ("SS12", {"memory": (100, 100), "bytes": (100, 50)}, "no less memory is needed"),
        ("SS12", {"memory": (100, 50), "bytes": (100, 103)}, "more bytes are sent"),
        ("SS12", {"memory": (100, 50), "bytes": (100, 102)}, ""),  # a twentieth of the memory that is spared
        ("SS12", {"memory": (100, 50), "bytes": (100, 102), "flops": (100, 101)}, "more bytes are sent"),
        ("SS23", {"memory": (100, 50), "bytes": (100, 102)}, ""),
        ("SS23", {"memory": (100, 50), "bytes": (100, 102), "later": (0, 1)}, "more bytes are sent"),
    ],
)
def test_of_operations_and_memory(rule: str, costs: dict[str, Any], why: str) -> None:
    assert verdict(with_results(), finding(rule=rule), **costs) == (HELPS if not why else ("not helping", why))


def test_the_same_results() -> None:
    assert verdict(with_results(type="f32[4]")) == ("values differ", "the results have other types")
    assert verdict(with_results(), values="differ") == ("values differ", CHANGED)
    assert verdict(with_results(), values="close") == verdict(with_results(), values="not compared") == HELPS


def test_what_is_as_requested() -> None:
    """A donation that is lost is a finding whether another one saves memory or not."""
    lost = finding(rule="SS20")
    assert verdict(with_results(), lost, with_results(lost), memory=(100, 100)) == HELPS
    assert verdict(with_results(), lost, with_results(lost), memory=(100, 101))[1] == "more memory is needed"
    assert verdict(with_results(lost), lost, with_results(lost))[1] == "the finding is still there"
    assert verdict(with_results(), lost, with_results(lost), bytes=(100, 101))[1] == "more bytes are sent"


def test_nothing_wrong_appears() -> None:
    other = finding(rule="SS02", severity="error")
    assert verdict(with_results(other)) == ("not helping", "SS02 appears")
    assert verdict(with_results(other), before=with_results(FOUND, other)) == HELPS
    assert verdict(with_results(finding(rule="SS02"))) == HELPS


def test_of_what_is_wrong() -> None:
    """Other numbers are meant; wrong gradients over the same axes are not, of the same subject least of all."""
    wrong = finding(rule="SS24", severity="error", subject="w", message="It is twice.")
    costs = {"values": "differ", "bytes": (100, 200)}
    one, two = with_results(wrong), with_results(wrong, wrong)
    assert verdict(with_results(), wrong, one, **costs) == HELPS
    assert verdict(one, wrong, one, **costs) == ("not helping", "the finding is still there")
    assert verdict(one, wrong, two, **costs) == ("not helping", f"still wrong: {wrong.message}")
    other = finding(rule="SS24", severity="error", subject="v", message="It is twice.")
    assert verdict(with_results(other), wrong, two, **costs) == HELPS
    elsewhere = finding(rule="SS24", severity="error", subject="w", message="It is twice.", axes=axes("dp"))
    assert verdict(with_results(elsewhere), wrong, two, **costs) == HELPS


EDITS = (Edit("m.py", 7, 0, 7, 1, "b"),)


def done(state: Any, saved: int = 60, seconds: tuple[float, float] | None = None) -> Experiment:
    times = seconds or (None, None)
    return Experiment(state, "", Measured(bytes=100, seconds=times[0]), Measured(bytes=100 - saved, seconds=times[1]))


@pytest.mark.parametrize(
    ("fix", "severity", "saved"),
    [
        (Fix("advice"), "info", None),
        (Fix("a", EDITS), "info", None),
        (Fix("a", EDITS, done("not helping")), "info", None),
        (Fix("a", EDITS, done("values differ")), "info", None),
        (Fix("a", EDITS, done("tried")), "warning", 60),
        (Fix("a", EDITS, done("tried", 0)), "info", 0),
        (Fix("a", EDITS, done("tried", 60, (1.0, 0.995))), "warning", 60),  # less than 1 %, but 5 ms
        (Fix("a", EDITS, done("tried", 60, (1e-6, 0.995e-6))), "info", 60),
    ],
)
def test_only_what_was_seen_to_help_is_a_warning(fix: Fix, severity: str, saved: int | None) -> None:
    (found,) = settled(report(findings=(finding(saved_bytes=100, fixes=(fix,)),))).findings
    assert (found.severity, found.saved_bytes) == (severity, saved)
    assert found.expected == (100, None)
    again = settled(report(findings=(found,))).findings
    assert again == (found,)


def test_errors_and_observations_stay() -> None:
    wrong, lost = finding(rule="SS05", severity="error"), finding(rule="SS20")
    assert [each.severity for each in settled(report(findings=(lost, wrong))).findings] == ["error", "warning"]


def test_one_change_is_one_finding() -> None:
    """The findings that the same edits fix are one, with the places of all; the largest saving is first."""
    small, large = Fix("s", EDITS, done("tried", 10)), Fix("l", (Edit("m.py", 9, 0, 9, 1, ""),), done("tried", 50))
    listed = settled(
        report(findings=tuple(finding(n, fixes=(fix,)) for n, fix in ((1, small), (2, small), (3, large))))
    )
    assert [(each.place.source.line, len(each.related)) for each in listed.findings] == [(3, 0), (1, 1)]


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (("SS33", "SS38"), ["SS33", "SS38"]),
        (("SS33", "SS33"), ["SS33"]),
        (("SS01", "SS23"), ["SS01"]),
        (("SS38", "SS23"), ["SS38"]),
        (("SS20", "SS34"), ["SS34", "SS20"]),
    ],
)
def test_of_one_change_different_observations_are_kept(rules: tuple[str, ...], kept: list[str]) -> None:
    """Once: what was requested is the finding, what follows from it is evidence of that, and a note."""
    sides = Measured(bytes=100), Measured(bytes=60)
    fix = Fix("change it", (Edit("a.py", 1, 0, 1, 0, ""),), Experiment("tried", "", *sides))
    found = [finding(rule=rule, message=f"{number}", fixes=(fix,)) for number, rule in enumerate(rules)]
    shown = settled(report(findings=tuple(found))).findings
    assert [each.rule for each in shown] == kept
    assert [each.severity for each in shown] == ["warning", "info"][: len(kept)]
    ended = [text.partition(":")[0] for each in shown[:1] for name, text in each.evidence if name == ALSO]
    assert ended == kept[1:]
    again = settled(report(findings=shown)).findings
    assert [(each.rule, each.severity, each.evidence) for each in again] == [
        (each.rule, each.severity, each.evidence) for each in shown
    ]


def test_what_comes_to_the_same_is_one_finding() -> None:
    """Other edits that do the same are no second fix, if the first ends the other finding, too."""
    sides = Measured(bytes=100), Measured(bytes=60)
    one, other = (
        Fix("change it", (Edit("a.py", line, 0, line, 0, ""),), Experiment("tried", "", *sides, gone=gone))
        for line, gone in ((1, ("SS20", "SS37")), (2, ("SS20",)))
    )
    found = (finding(rule="SS37", fixes=(one,)), finding(rule="SS20", fixes=(other,)))
    assert [each.severity for each in settled(report(findings=found)).findings] == ["warning", "info"]
    apart = (finding(rule="SS37", fixes=(replace(one, experiment=Experiment("tried", "", *sides)),)), found[1])
    assert [each.severity for each in settled(report(findings=apart)).findings] == ["warning", "warning"]
