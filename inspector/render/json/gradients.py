"""The gradients that were compared with differences of values."""

from __future__ import annotations

from msgspec import Struct


class CodeLine(Struct, frozen=True):
    """A line of the user's source."""

    file: str
    line: int


class Derivative(Struct, frozen=True):
    """A derivative of one argument: what JAX's gives along a random direction, and what differences of values give.

    `sums` are the lines of the collectives that a gradient taken inside of a shard_map goes through afterwards, null
    for other gradients. With a `factor` both are equal only where that constant, by which the gradient is multiplied at
    `factor_at`, belongs to the gradient and is no learning rate.
    """

    of: str
    argument: str
    slope: float
    difference: float
    spread: float
    file: str | None
    line: int
    sums: list[CodeLine] | None
    factor: float | None
    factor_at: CodeLine | None


class Gradients(Struct, frozen=True):
    """The derivatives that --check-gradients compared; `undefined` is why none were, where none could be.

    `left_out` counts those that were not compared.
    """

    checked: list[Derivative]
    undefined: str | None
    left_out: int
