"""A saved capture keeps what came of trying fixes: opened, it has the findings of the report that was shown."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from shardscope.inspector.capture.again import request_in, saved
from shardscope.inspector.capture.file import load, save
from shardscope.inspector.capture.model import Capture, CaptureError
from shardscope.inspector.capture.spawn import Cancellation, CaptureHandle, Request, last_capture
from shardscope.inspector.experiments.lab import tried
from shardscope.inspector.findings.kept import kept
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Report
from shardscope.inspector.report.policy import EVERYTHING, Policy
from shardscope.samples.catalogue import samples
from shardscope.tui import app

from shardscope.commands import show
from shardscope.commands.job import Job
from shardscope.commands.output import output_of
from tests.experiments import programs


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


def test_a_capture_that_is_saved_from_the_screen_has_what_was_tried(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "show_live", lambda begun, analyses, improve, watch: (report.capture, report))
    options = argparse.Namespace(format="tui", output=None, quiet=False, details=(), stage=None, links=False)
    path = tmp_path / "screen.shardscope"
    job = Job(output_of(options), EVERYTHING, save=str(path))
    show.one(CaptureHandle(Request("gather_then_slice.py:faulty"), iter(()), Cancellation()), job)
    assert load(path).tried == kept(report) != b""


def test_nothing_is_kept_where_nothing_was_tried(report: Report) -> None:
    assert kept(inspect(report.capture)) == b""


@pytest.fixture
def again(tmp_path: Path) -> Capture:
    """A capture from a file, whose script is as it was."""
    script = tmp_path / "script.py"
    script.write_text(programs.CACHE)
    request = Request(f"{script}:step", live=False, probe="none")
    capture = last_capture(request)
    save(replace(capture, request=saved(capture, request)), tmp_path / "saved.shardscope")
    return load(tmp_path / "saved.shardscope")


def test_a_capture_is_made_again(again: Capture) -> None:
    """The program is that of the file, in an interpreter that no file names."""
    request = request_in(again, None)
    assert (request.python, request.live, request.target) == (None, False, "cpu")
    texts = [capture.stage("stablehlo") for capture in (again, last_capture(request))]
    assert len({stage.source.data for stage in texts if stage is not None}) == 1


def test_a_script_that_has_changed_is_not_run(again: Capture, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(f"{programs.CACHE}# saved since\n")
    with pytest.raises(CaptureError, match=r"script\.py has changed since"):
        request_in(again, None)
    (tmp_path / "script.py").unlink()
    with pytest.raises(CaptureError, match=r"script\.py: No such file"):
        request_in(again, None)


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"function": 1}', b"[" * 9999])
def test_a_request_that_is_none_of_ours_runs_nothing(again: Capture, text: bytes) -> None:
    with pytest.raises(CaptureError, match="cannot be made again"):
        request_in(replace(again, request=text), None)


def test_a_request_names_no_other_command(again: Capture) -> None:
    """Not even one that someone has put into the file."""
    fields = msgspec.json.decode(again.request) | {"python": "/bin/false", "case_evaluator": ["/bin/false"]}
    request = request_in(replace(again, request=msgspec.json.encode(fields)), None)
    assert (request.python, request.case_evaluator, request.replaced) == (None, (), ())


def test_findings_that_say_the_same_are_kept_apart(report: Report, tmp_path: Path) -> None:
    """As constraints of two calls of a helper, of which one was tried."""
    first = report.findings[0]
    twin = replace(first, fixes=tuple(replace(fix, experiment=None) for fix in first.fixes), severity="info")
    both = replace(report, findings=(*report.findings, twin))
    states = [[fix.state for fix in each.fixes] for each in reopened(both, kept(both), tmp_path).findings]
    assert [fix.state for fix in first.fixes] in states
