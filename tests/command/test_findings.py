"""`shardscope rules`, `explain SS01`, and the options about findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardscope.inspector.capture.file import save
from shardscope.inspector.render.json import resolved

from tests.conftest import SampleCapture

from .conftest import Shardscope


@pytest.fixture
def faulty(sample: SampleCapture, tmp_path: Path) -> str:
    """A saved capture with one warning, SS01."""
    path = str(tmp_path / "faulty.shardscope")
    save(sample("missing_reduce_scatter:faulty"), path)
    return path


def test_rules(shardscope: Shardscope) -> None:
    done = shardscope("rules")
    assert done.returncode == 0
    assert b"SS01  warning   missing-reduce-scatter" in done.stdout


def test_explain(shardscope: Shardscope) -> None:
    by_id, by_slug = shardscope("explain", "SS01"), shardscope("explain", "missing-reduce-scatter")
    assert by_id.returncode == 0
    assert by_id.stdout == by_slug.stdout
    assert b'lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)' in by_id.stdout


def test_the_text_tells_place_and_idea(shardscope: Shardscope, faulty: str) -> None:
    """A change that was not tried saves nothing as yet, and its finding is a note."""
    text = shardscope("open", faulty).stdout.decode()
    assert "1 note (SS01)" in text
    in_full = shardscope("open", faulty, "--details", "findings").stdout.decode()
    (line,) = [line for line in in_full.splitlines() if "missing-reduce-scatter" in line]
    assert "missing_reduce_scatter.py:23" in line
    change = "lax.psum_scatter(a @ b, 'x', scatter_dimension=0, tiled=True), without the slice of line 25"
    assert f"idea: {change} (not tried)" in " ".join(in_full.split())
    assert "saves" not in in_full


def test_the_json_tells_the_place_in_the_text(shardscope: Shardscope, faulty: str) -> None:
    (found,) = resolved(json.loads(shardscope("open", faulty, "--format", "json").stdout))["findings"]
    assert (found["rule"], found["location"]["stage"], found["location"]["source"]["line"]) == ("SS01", "jaxpr", 23)
    assert (found["severity"], found["saves"]["bytes"], found["verified"]) == ("info", None, "not tried")
    assert [each["state"] for each in found["fixes"]] == ["untried"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 0),
        (("--fail-on", "error"), 0),
        (("--fail-on", "warning"), 0),
        (("--fail-on", "info"), 1),
        (("--fail-on", "info", "--ignore", "SS01"), 0),
        (("--fail-on", "info", "--select", "psum-of-invariant"), 0),
        (("--fail-on", "info", "--select", "SS01,SS04"), 1),
        (("--select", "SS99"), 2),
    ],
)
def test_exit_codes(shardscope: Shardscope, faulty: str, options: tuple[str, ...], code: int) -> None:
    assert shardscope("open", faulty, *options).returncode == code


@pytest.mark.parametrize(
    ("options", "code", "severity"),
    [((), 0, "info"), (("--strict",), 1, "error"), (("--strict", "--ignore", "SS23"), 0, None)],
)
def test_strict(
    shardscope: Shardscope, sample: SampleCapture, tmp_path: Path, options: tuple[str, ...], code: int, severity: str
) -> None:
    """Implicit communication, of which nothing else is reported."""
    path = str(tmp_path / "inserted.shardscope")
    save(sample("constraint:closed_columns"), path)
    done = shardscope("open", path, "--format", "json", *options)
    assert done.returncode == code
    found = {each["rule"]: each["severity"] for each in json.loads(done.stdout)["findings"]}
    assert found.get("SS23") == severity


def test_verify(shardscope: Shardscope) -> None:
    done = shardscope("run", "missing_reduce_scatter:faulty", "--no-live", "--verify", "--format", "json")
    (found,) = json.loads(done.stdout)["findings"]
    assert found["verified"] == "yes"
    before, after = found["trial"]["before"], found["trial"]["after"]
    assert (before["collectives"], before["bytes"]) == ({"all-reduce x": 1}, 448)
    assert (after["collectives"], after["bytes"]) == ({"reduce-scatter x": 1}, 224)
    (fix,) = [each for each in found["fixes"] if each["state"] == "tried"]
    assert (fix["experiment"], fix["edits"]) == (found["trial"], found["edits"])


@pytest.mark.parametrize("format", ["sarif", "github", "markdown"])
def test_formats_for_reviews(shardscope: Shardscope, faulty: str, format: str) -> None:
    done = shardscope("open", faulty, "--format", format, "--fail-on", "info")
    assert done.returncode == 1
    assert b"SS01" in done.stdout
