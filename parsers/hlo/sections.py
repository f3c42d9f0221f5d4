"""Spans of computations and statements in a text that is not as printed, and of computations in instructions.

    sum = f32[] reduce(x, zero), dimensions={0}, to_apply={
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

One that is written where otherwise a name stands has none in the text. XLA calls these `_`, `_.1` and so on, in the
order in which they end, and so do we.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count

from ..record import Record
from ..source import Span


class Section(Record, frozen=True):
    """A computation: all of it with the attributes behind it, what is between its braces, and the statements there.

    `nested` are the places of computations written in its own statements; each of these has a section too, with
    `is_nested`. The name is empty where the text has none. With `is_valid` all of it is in the language.
    """

    name: str
    is_entry: bool
    span: Span
    body: Span
    statements: tuple[Span, ...]
    nested: tuple[Span, ...]
    is_nested: bool = False
    is_valid: bool = False


def given_names(sections: Sequence[Section], used: Iterable[str]) -> Mapping[int, str]:
    """The names of nested computations by the offsets where they start, all others of the module having these names."""
    ends = sorted((section.body.end, section.span.start) for section in sections if section.is_nested)
    taken = {section.name for section in sections} | set(used) if ends else set()
    names = (name for name in chain(["_"], map("_.{}".format, count(1))) if name not in taken)
    return {start: name for (_, start), name in zip(ends, names, strict=False)}


class Nested(Record, frozen=True):
    """The span of a nested computation, braces included, and the name that it is given."""

    span: Span
    name: str


class Statement(Record, frozen=True):
    """A statement in some data with computations nested in it, by their places."""

    data: bytes
    place: Span
    nested: Sequence[Nested] = ()

    @property
    def text(self) -> bytes:
        """The statement with names where computations are written."""
        starts = [self.place.start, *(each.span.end for each in self.nested)]
        ends = [*(each.span.start for each in self.nested), self.place.end]
        names = [*(each.name.encode() for each in self.nested), b""]
        return b"".join(self.data[start:end] + name for start, end, name in zip(starts, ends, names, strict=True))

    def offset(self, position: int) -> int:
        """Return the offset in the data for this position of the text."""
        offset = position + self.place.start
        for each in self.nested:
            if offset < each.span.start + len(each.name):
                return min(offset, each.span.start)
            offset += each.span.end - each.span.start - len(each.name)
        return offset
