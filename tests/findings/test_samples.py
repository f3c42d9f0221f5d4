"""What is found in the samples: each fault, and nothing else."""

from __future__ import annotations

import pytest
from shardscope.inspector.pipeline import inspect

from tests.conftest import SAMPLE_FUNCTIONS, SampleCapture

EXPECTED = {
    "missing_reduce_scatter:faulty": [("SS01", "warning", "proved", ("x",), 23)],
    "gather_then_slice:faulty": [("SS02", "warning", "proved", ("x",), 19)],
    "psum_of_invariant:faulty": [("SS04", "error", "proved", ("batch",), 25)],
    "unsound_invariance:faulty": [("SS05", "error", "likely", ("x",), 23)],
    "extra_backward_psum:faulty": [
        ("SS03", "warning", "proved", ("data",), 25),  # of the mean over `data`, whose cotangent is one shared number
        ("SS03", "warning", "proved", ("model",), 24),  # of the last block; the first one's cotangents do differ
    ],
    # The inefficient transposes of JAX's document of 2023: the checked twins of both communicate nothing.
    "transposes:identity_unchecked": [("SS03", "warning", "proved", ("i",), 25)],
    "transposes:psum_to_invariant_unchecked": [("SS03", "warning", "proved", ("i",), 33)],
    "full_rematerialization:faulty": [("SS09", "warning", "proved", ("model",), 21)],
    "indivisible_constraint:faulty": [("SS11", "warning", "proved", ("x",), 21)],
}
"""Rule, severity, confidence, axes and line of each finding, by function; all others are clean."""


@pytest.mark.parametrize("function", SAMPLE_FUNCTIONS)
def test_findings(sample: SampleCapture, function: str) -> None:
    found = []
    for each in inspect(sample(function)).findings:
        frame = each.place.source.frame
        found.append((each.rule, each.severity, each.confidence, each.axes, None if frame is None else frame.line))
    assert found == EXPECTED.get(function, [])
