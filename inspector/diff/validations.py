"""Two compiled programs that were evaluated on the same arguments: whether they compute the same."""

from __future__ import annotations

from ...parsers.record import Record
from ..capture.model import Validation

TOLERANCE = 1e-6
"""Largest difference, relative to the norm of an output, that the order of sums and folded constants explain."""


class ValidatedPair(Record, frozen=True):
    """The outputs of two compiled programs: the largest difference, in multiples of the norm, and those that differ.

    `reason` says why they could not be compared.
    """

    outputs: int = 0
    error: float = 0.0
    differing: tuple[str, ...] = ()
    reason: str = ""


def compare_validations(before: Validation | None, after: Validation | None) -> ValidatedPair:
    """Compare two evaluated programs by projections of their outputs."""
    if before is None or after is None:
        return ValidatedPair(reason="a side was not captured")
    for side, found in (("A", before), ("B", after)):
        if found.status == "not evaluated":
            return ValidatedPair(reason=f"{side} was not evaluated")
        if found.reason:
            return ValidatedPair(reason=f"{side} never ends")
    if [output.shape for output in before.outputs] != [output.shape for output in after.outputs]:
        return ValidatedPair(reason="the outputs have other shapes")
    error, differing = 0.0, []
    for one, other in zip(before.outputs, after.outputs, strict=True):
        if one.projections is None or other.projections is None:
            continue
        norm = max(one.projections[0], other.projections[0]) or 1.0
        distance = max(abs(x - y) for x, y in zip(one.projections, other.projections, strict=True)) / norm
        error = max(error, distance)
        if not distance <= TOLERANCE:
            differing.append(other.path)
    return ValidatedPair(len(after.outputs), error, tuple(differing))
