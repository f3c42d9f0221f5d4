"""`shardscope rules`, `explain SS01`, and the options about findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardscope.inspector.capture.file import save

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
    text = shardscope("open", faulty).stdout.decode()
    assert "SS01 missing-reduce-scatter  proved  missing_reduce_scatter.py:23" in text
    assert "fix: lax.psum_scatter(a @ b, 'x', scatter_dimension=0, tiled=True), without the slice of line 25" in text
    assert "saves: 224 B" in text


def test_the_json_tells_the_place_in_the_text(shardscope: Shardscope, faulty: str) -> None:
    (found,) = json.loads(shardscope("open", faulty, "--format", "json").stdout)["findings"]
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
