"""The gradients that were compared with differences of values."""

from __future__ import annotations

from msgspec import Struct


class Derivative(Struct, frozen=True):
    """A derivative of one argument: what JAX's gives along a random direction, and what differences of values give."""

    of: str
    argument: str
    slope: float
    difference: float
    spread: float
    file: str | None
    line: int


class Gradients(Struct, frozen=True):
    """The derivatives that --check-gradients compared; `undefined` is why none were, where none could be.

    `left_out` counts those that were not compared.
    """

    checked: list[Derivative]
    undefined: str | None
    left_out: int
