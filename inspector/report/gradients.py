"""Gradients that differ from the true ones, by what their derivatives and differences of values give."""

from __future__ import annotations

from ...parsers.record import Record
from ..capture.protocol.values import Derivative, Gradients

TOLERANCE = 1e-3
"""Tolerated deviation of a ratio from 1; differences in float64 are accurate to about 1e-8."""

VARYING = 10.0
"""Multiple of the spread of differences that is no deviation: values with fewer bits, and functions with kinks."""


class WrongGradient(Record, frozen=True):
    """A derivative, and how many times the true one it is; None where the true one is zero."""

    derivative: Derivative
    factor: float | None


def wrong_gradients(found: Gradients) -> tuple[WrongGradient, ...]:
    """The derivatives that are not what differences of values give."""
    wrong = []
    for each in found.checked:
        apart, true = abs(each.slope - each.difference), abs(each.difference)
        size = max(true, abs(each.slope))
        if apart > TOLERANCE * size and apart > VARYING * each.spread and not _is_noise(each):
            wrong.append(WrongGradient(each, each.slope / each.difference if true > 1e-6 * size else None))
    return tuple(wrong)


def _is_noise(each: Derivative) -> bool:
    return max(abs(each.slope), abs(each.difference)) < 1e-9
