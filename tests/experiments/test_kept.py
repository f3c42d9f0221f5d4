"""A saved capture keeps what came of trying fixes: opened, it has the findings of the report that was shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from shardscope.inspector.capture.file import load, save
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.experiments.lab import tried
from shardscope.inspector.findings.kept import kept
from shardscope.inspector.findings.policy import Policy
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Report
from shardscope.samples.catalogue import samples


@pytest.fixture(scope="module")
def report() -> Report:
    """A sample with a fix that helps, and others that do not."""
    path = next(each.path for each in samples() if each.name == "gather_then_slice")
    request = Request(f"{path}:faulty", live=False)
    found = tried(inspect(last_capture(request)), request, seconds=600)
    assert {fix.state for each in found.findings for fix in each.fixes} >= {"tried", "not helping"}
    return found


def reopened(report: Report, text: bytes, folder: Path, policy: Policy | None = None) -> Report:
    path = folder / "kept.shardscope"
    save(replace(report.capture, tried=text), path)
    return inspect(load(path)) if policy is None else inspect(load(path), policy)


def test_findings_are_those_of_the_report(report: Report, tmp_path: Path) -> None:
    assert reopened(report, kept(report), tmp_path).findings == report.findings


def test_policies_hold(report: Report, tmp_path: Path) -> None:
    without = Policy(without=frozenset({"SS02"}))
    found = reopened(report, kept(report), tmp_path, without).findings
    assert found == tuple(each for each in report.findings if each.rule != "SS02") != report.findings


def test_a_rule_finds_what_was_not_kept(report: Report, tmp_path: Path) -> None:
    """As one that was not wanted when the capture was saved."""
    some = msgspec.json.decode(kept(report))
    some["findings"] = [each for each in some["findings"] if each["rule"] != "SS02"]
    found = reopened(report, msgspec.json.encode(some), tmp_path).findings
    assert {each.rule for each in found} == {each.rule for each in report.findings}
    assert not any(fix.helps for each in found if each.rule == "SS02" for fix in each.fixes)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"findings": 1}', b'{"findings": [{"rule": "SS02"}]}', b"[" * 9999]
)
def test_a_text_that_is_none_of_ours_changes_nothing(report: Report, text: bytes, tmp_path: Path) -> None:
    assert reopened(report, text, tmp_path).findings == inspect(report.capture).findings


def test_nothing_is_kept_where_nothing_was_tried(report: Report) -> None:
    assert kept(inspect(report.capture)) == b""
