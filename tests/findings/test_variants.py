"""SS01 in other spellings, and what only looks like it; SS06, which a run shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect

PROGRAMS = Path(__file__).with_name("programs.py")


def rules_found(function: str, *, live: bool = False) -> list[str]:
    *_, last = capture(Request(f"{PROGRAMS}:{function}", live=live))
    assert last.complete, last.failure
    return [found.rule for found in inspect(last).findings]


@pytest.mark.parametrize(
    "function", ["scaled", "cast", "biased", "nested", "remat", "both_axes", "one_of_two", "in_scan"]
)
def test_own_blocks_of_sums(function: str) -> None:
    assert rules_found(function) == ["SS01"]


@pytest.mark.parametrize("function", ["neighbours", "used_twice", "other_axis", "normalized"])
def test_what_needs_the_whole_sum(function: str) -> None:
    assert rules_found(function) == []


@pytest.mark.parametrize(("function", "expected"), [("left_out", ["SS06"]), ("summed", [])])
def test_unchecked_out_specs(function: str, expected: list[str]) -> None:
    assert rules_found(function, live=True) == expected
