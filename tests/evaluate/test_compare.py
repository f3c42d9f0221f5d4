"""Outputs that are zero but for rounding, beside outputs that are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from shardscope.inspector.evaluate.case import Case, Output
from shardscope.inspector.evaluate.compare import TOLERANCE, compare

pytestmark = pytest.mark.once
ALL = (slice(0, 64),)


@pytest.mark.parametrize(("scale", "differs"), [(1.0, True), (1e-10, True), (1e-13, True), (1e-18, False)])
def test_the_rounding_of_a_sum_that_is_zero_is_no_difference(scale: float, differs: bool) -> None:
    """As the gradient of a bias that softmax does not depend on: 1e-18 where weights are 1."""
    random = np.random.default_rng(0)
    weights, before, after = (random.standard_normal(64) for _ in range(3))
    case = Case("", "", 1, ("w",), (weights,), ((ALL,),), (Output("bias", (64,), (ALL,)),), "")
    [found] = compare(case, [[before * scale]], [[after * scale]])
    assert (found.error > TOLERANCE) == differs
    assert bool(found.devices) == differs
