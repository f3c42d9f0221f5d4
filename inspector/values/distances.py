"""Distances of arrays of two runs, by the projections that were recorded of them."""

from __future__ import annotations

import math

from ..capture.model import OutputSummary
from ..ir.types import jax_type

ROUNDING = {"f64": 1e-11, "f32": 1e-4, "bf16": 3e-2, "f16": 1e-2}
"""Relative distance, in norm, by which results may differ when they are computed in another order."""


def apart(one: OutputSummary, other: OutputSummary) -> float | None:
    """The distance of two arrays in norm; None where it is not known."""
    if one.projections is None or other.projections is None:
        return None
    return max(abs(a - b) for a, b in zip(one.projections, other.projections, strict=True))


def distance(one: OutputSummary, other: OutputSummary, least: float = 0.0) -> float | None:
    """The distance of two arrays of one shape, as a multiple of what rounding explains in the coarser of their types,
    or by so much at `least`; None where it is not known."""
    far = apart(one, other)
    if far is None or one.projections is None or other.projections is None:
        return None
    rounding = [ROUNDING.get(jax_type(each.type).dtype, 0.0) for each in (one, other)]
    if one.non_finite != other.non_finite or (far and not all(rounding)):
        return math.inf
    tolerance = max(*rounding, least) * max(one.projections[0], other.projections[0])
    return far / tolerance if tolerance else math.inf if far else 0.0
