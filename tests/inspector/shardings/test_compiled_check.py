"""Derived shardings of arguments and outputs against those that JAX reads from the compiled program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect

PROGRAMS = Path(__file__).parents[2] / "capture" / "programs" / "propagated.py"


def last(function: str) -> Capture:
    *_, final = capture(Request(f"{PROGRAMS}:{function}", live=False))
    assert final.failure is None, final.failure
    return final


def contradictions(found: Capture) -> list[str]:
    return [placed.message.text for placed in inspect(found).messages if placed.message.text.startswith("internal")]


@pytest.mark.parametrize("function", ["sharded", "mapped", "looped", "branches", "special"])
def test_no_contradiction(function: str) -> None:
    found = last(function)
    assert any(value.actual for value in (*found.arguments, *found.outputs))
    assert contradictions(found) == []


def test_a_contradiction_is_an_internal_error() -> None:
    found = last("sharded")
    (output,) = found.outputs
    assert output.actual == "P('x', 'y')"
    # The same placement in another spelling is none; another order of the axes is one.
    for other, expected in (("P(('x',), ('y',))", 0), ("P('y', 'x')", 1), ("P()", 1)):
        changed = replace(found, outputs=(replace(output, actual=other),))
        said = contradictions(changed)
        assert len(said) == expected
        assert all(other in text and "P('x', 'y')" in text and "result" in text for text in said)
