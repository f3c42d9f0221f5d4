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


def test_the_text_tells_place_and_fix(shardscope: Shardscope, faulty: str) -> None:
    fix = "fix: lax.psum_scatter(a @ b, 'x', scatter_dimension=0, tiled=True), without the slice of line 25"
    text = shardscope("open", faulty).stdout.decode()
    (line,) = [line for line in text.splitlines() if "SS01 missing-reduce-scatter" in line]
    assert "missing_reduce_scatter.py:23" in line
    assert fix in text
    assert "saves 224 B per device per step" in " ".join(text.split())
    in_full = shardscope("open", faulty, "--details", "findings").stdout.decode()
    assert fix in in_full
    assert "saves: 224 B" in in_full


def test_the_json_tells_the_place_in_the_text(shardscope: Shardscope, faulty: str) -> None:
    (found,) = resolved(json.loads(shardscope("open", faulty, "--format", "json").stdout))["findings"]
    assert (found["rule"], found["location"]["stage"], found["location"]["source"]["line"]) == ("SS01", "jaxpr", 23)
    assert found["saves"]["bytes"] == 224


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 0),
        (("--fail-on", "error"), 0),
        (("--fail-on", "warning"), 1),
        (("--fail-on", "info"), 1),
        (("--fail-on", "warning", "--ignore", "SS01"), 0),
        (("--fail-on", "warning", "--select", "psum-of-invariant"), 0),
        (("--fail-on", "warning", "--select", "SS01,SS04"), 1),
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
    assert found["trial"]["before"] == {"collectives": {"all-reduce x": 1}, "bytes": 448, "seconds": None}
    assert found["trial"]["after"] == {"collectives": {"reduce-scatter x": 1}, "bytes": 224, "seconds": None}


@pytest.mark.parametrize("format", ["sarif", "github", "markdown"])
def test_formats_for_reviews(shardscope: Shardscope, faulty: str, format: str) -> None:
    done = shardscope("open", faulty, "--format", format, "--fail-on", "warning")
    assert done.returncode == 1
    assert b"SS01" in done.stdout
