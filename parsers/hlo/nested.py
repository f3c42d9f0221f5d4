"""Computations written inside of an instruction, where otherwise the name of one stands.

    sum = f32[] reduce(x, zero), dimensions={0}, to_apply={
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

In the text they have no name. XLA calls them `_`, `_.1` and so on, in the order in which they end, and so do we.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, count

from ..source import Span
from .call import CALLING
from .patterns import NAME, SPACE

FIRST = rf"{SPACE}(?:ROOT\s++)?+%?{NAME}\s*+=(?!=)"
"""How the first instruction of one starts."""


@cache
def in_a_line() -> re.Pattern[bytes]:
    """The beginning of an attribute whose value is one, or a list with one in it."""
    return re.compile(rf", (?:{'|'.join(CALLING)})=(?:\{{[^{{}}=]*+(?=\{{))?+\{{{FIRST}".encode())


@dataclass(frozen=True, slots=True)
class Nested:
    """Where a nested computation is, braces included, and the name that it is given."""

    span: Span
    name: str


def unused_names(used: Collection[str]) -> Iterator[str]:
    """Names for nested computations, in a module that has these names already."""
    return (name for name in chain(["_"], map("_.{}".format, count(1))) if name not in used)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in some data with computations nested in it, by their places."""

    data: bytes
    place: Span
    nested: Sequence[Nested]

    @property
    def text(self) -> bytes:
        """The statement with names where computations are written."""
        starts = [self.place.start, *(each.span.end for each in self.nested)]
        ends = [*(each.span.start for each in self.nested), self.place.end]
        names = [*(each.name.encode() for each in self.nested), b""]
        return b"".join(self.data[start:end] + name for start, end, name in zip(starts, ends, names, strict=True))

    def offset(self, position: int) -> int:
        """Where in the data that is which is at this position of the text."""
        offset = position + self.place.start
        for each in self.nested:
            if offset < each.span.start + len(each.name):
                return min(offset, each.span.start)
            offset += each.span.end - each.span.start - len(each.name)
        return offset
