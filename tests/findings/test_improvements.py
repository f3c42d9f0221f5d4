"""A change is an improvement, or it is said why not: each reason by two reports that differ in nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from shardscope.inspector.capture.model import Capture, Memory, Subject, Value
from shardscope.inspector.findings.fixes.numbers import Comparison
from shardscope.inspector.findings.fixes.verify import CHANGED, MAX_BYTES, MAX_FLOPS, _is_small, _problem, _with_numbers
from shardscope.inspector.report import Finding, Report, Trial

from tests.inspector.tables.by_hand import axes, finding, of_step, report

FOUND = finding(saved_bytes=100)
"""Of SS01, which saves bytes."""


def with_results(*findings: Finding, type: str = "f32[8]") -> Report:
    return report(findings=findings, capture=Capture(outputs=(Value("result", type, None),)))


def problem(after: Report, found: Finding = FOUND, before: Report | None = None, **trial: Any) -> str | None:
    known = {"bytes_before": 100, "bytes_after": 60}
    return _problem(before or with_results(found), after, found, Trial(True, "", **known | trial))


@pytest.mark.parametrize(
    ("after", "trial", "why"),
    [
        ((), {}, None),
        ((FOUND,), {}, "the finding is still there"),
        ((FOUND, FOUND), {}, "the finding is still there"),
        # As many findings that save less, where fewer bytes are sent.
        ((finding(saved_bytes=99),), {}, None),
        ((finding(saved_bytes=99),), {"bytes_after": 100}, "the finding is still there"),
        ((finding(saved_bytes=40), finding(saved_bytes=40)), {}, "the finding is still there"),
        # What was hidden may come up when bytes are saved, but nothing wrong.
        ((finding(rule="SS02"),), {}, None),
        ((finding(rule="SS02"),), {"bytes_after": 100}, "the finding is gone, and SS02 appears"),
        ((finding(rule="SS02"),), {"bytes_after": None}, "the finding is gone, and SS02 appears"),
        ((finding(rule="SS02", severity="error"),), {}, "the finding is gone, and SS02 appears"),
        ((), {"values": "differ"}, CHANGED),
        ((), {"values": "close"}, None),
        ((), {"bytes_after": 99}, None),
        ((), {"bytes_after": 100}, "no fewer bytes are sent"),
        ((), {"bytes_after": None}, None),
        ((), {"bytes_before": None}, None),
    ],
)
def test_of_a_finding_that_costs_bytes(after: tuple[Finding, ...], trial: dict[str, Any], why: str | None) -> None:
    assert problem(with_results(*after), **trial) == why


def test_what_was_there_before_is_no_reason() -> None:
    other = finding(rule="SS02", severity="error")
    assert problem(with_results(other), before=with_results(FOUND, other)) is None
    assert problem(with_results(other, other), before=with_results(FOUND, other)) == (
        "the finding is gone, and SS02 appears"
    )


def test_results_keep_their_types() -> None:
    assert problem(with_results(type="f32[4]")) == "the results have other types"
    assert problem(with_results(type="bf16[8]")) == "the results have other types"


@pytest.mark.parametrize(("seconds", "is_faster"), [(0.9, True), (1.0, False), (1.1, False), (None, True)])
def test_of_repeated_work(seconds: float | None, is_faster: bool) -> None:
    found = finding(rule="SS29")
    why = problem(with_results(), found, bytes_after=200, seconds_before=1.0, seconds_after=seconds)
    assert why == (None if is_faster else "the step is not faster")


@pytest.mark.parametrize(("sent", "is_more"), [(99, False), (100, False), (101, True)])
def test_of_memory(sent: int, is_more: bool) -> None:
    assert problem(with_results(), finding(rule="SS20"), bytes_after=sent) == (
        "more bytes are sent" if is_more else None
    )


def test_of_what_is_wrong() -> None:
    """Other numbers are meant; wrong gradients over the same axes are not, of the same subject least of all."""
    wrong = finding(rule="SS24", severity="error", subject="w", message="It is twice.")
    assert problem(with_results(), wrong, values="differ", bytes_after=200) is None
    before = with_results(wrong, wrong)
    still = f"still wrong: {wrong.message}"
    assert problem(with_results(wrong), wrong, before) == still
    other = finding(rule="SS24", severity="error", subject="v", message="It is twice.")
    assert problem(with_results(other), wrong, before) is None
    elsewhere = finding(rule="SS24", severity="error", subject="w", message="It is twice.", axes=axes("dp"))
    assert problem(with_results(elsewhere), wrong, before) is None


@pytest.mark.parametrize("values", ["equal", "close", "differ", "not compared"])
@pytest.mark.parametrize("severity", ["info", "warning", "error"])
def test_other_numbers(values: Any, severity: Any) -> None:
    found = _with_numbers(Trial(True, "fewer bytes"), finding(severity=severity), Comparison(values, ("result: 2",)))
    is_refused = values == "differ" and severity != "error"
    assert (found.verified, found.why) == ((False, CHANGED) if is_refused else (True, "fewer bytes"))
    assert (found.values, found.changes) == (values, ("result: 2",))


@pytest.mark.parametrize(
    ("bytes", "flops", "devices", "is_small"),
    [
        (MAX_BYTES // 8, MAX_FLOPS / 8, 8, True),
        (MAX_BYTES // 8 + 3, 1, 8, False),
        (3, MAX_FLOPS / 8 * 1.01, 8, False),
        (MAX_BYTES // 8 + 3, MAX_FLOPS / 8, 1, True),
    ],
)
def test_programs_that_run_on_cpus(bytes: int, flops: float, devices: int, is_small: bool) -> None:
    """By what arguments, results and temporaries take on all devices, and the operations of all."""
    subject = Subject("f", None, "cpu", "cpu", devices)
    split = bytes // 3
    memory = Memory(arguments=split, outputs=split, temporaries=bytes - 2 * split)
    whole = report(capture=Capture(subject=subject, memory=memory), cost=of_step(flops=flops))
    assert _is_small(whole) == is_small
    assert not _is_small(report(capture=Capture(subject=subject), cost=of_step()))
    assert not _is_small(report(capture=Capture(subject=subject, memory=memory)))
    assert not _is_small(report(capture=Capture(memory=memory), cost=of_step()))
