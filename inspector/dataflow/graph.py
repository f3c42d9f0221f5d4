"""The protocol that all walks along values use, whichever language the program is written in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from ...parsers.record import Record
from .meaning import Does


class AnyUse(Record, frozen=True):
    """An operation that takes a value as one of its operands; each language adds its own fields."""


class Output(Record, frozen=True):
    """A result of the whole program, by its path in the tuple that the program returns."""

    path: tuple[int, ...]


V = TypeVar("V")
U = TypeVar("U", bound=AnyUse)


class Graph(Protocol[V, U]):
    """The values of a program and their uses, through calls, loops and branches."""

    def uses(self, value: V, /, *, carried: bool = False) -> Iterator[U | V | Output | None]:
        """Yield each use of a value, or the value that it is elsewhere; None where it cannot be followed.

        In loops that a graph does not follow by itself, what is `carried` is followed only on request.
        """

    def does(self, use: U, /) -> Does:
        """Return what the operation does with that operand; INDEX for one that has no elements of the result."""

    def after(self, use: U, /) -> Sequence[V]:
        """The values that the operation makes of it."""
