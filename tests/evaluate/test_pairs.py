"""Two evaluated programs: whether they compute the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from shardscope.inspector.capture.protocol.values import ComparedOutput, Validation
from shardscope.inspector.render.validation import compare_validations


def validation(*arrays: np.ndarray) -> Validation:
    """One whose outputs have these values."""
    outputs = []
    for number, array in enumerate(arrays):
        random = np.random.default_rng(0)
        products = [float(array.ravel() @ random.standard_normal(array.size)) for _ in range(2)]
        projections = (float(np.linalg.norm(array)), products[0], products[1])
        outputs.append(ComparedOutput(f"result[{number}]", array.shape, 0.0, projections=projections))
    return Validation("same", outputs=tuple(outputs))


VALUES = np.random.default_rng(1).standard_normal((5, 7))


def test_equal_programs_are_equal() -> None:
    pair = compare_validations(validation(VALUES, VALUES.T), validation(VALUES * (1 + 1e-9), VALUES.T))
    assert (pair.outputs, pair.differing, pair.reason) == (2, (), "")
    assert pair.error < 1e-6


@pytest.mark.parametrize("change", [VALUES * 1.01, VALUES[::-1], -VALUES, np.where(VALUES.max() == VALUES, 0, VALUES)])
def test_an_output_that_differs_is_named(change: np.ndarray) -> None:
    assert compare_validations(validation(VALUES, VALUES), validation(VALUES, change)).differing == ("result[1]",)


def test_what_cannot_be_compared_is_not_called_equal() -> None:
    good = validation(VALUES)
    assert compare_validations(good, None).reason
    assert compare_validations(replace(good, status="not evaluated"), good).reason == "A was not evaluated"
    assert compare_validations(good, validation(VALUES.T)).reason == "the outputs have other shapes"
