"""Positions of lines in a text, and of a searched word."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property

from ..parsers.record import Record
from ..parsers.source import occurrences


class LineIndex:
    """The lines of a text, counted from 0. A text of hundreds of megabytes is never split or decoded as a whole."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._starts = array("Q", [0])

    @cached_property
    def count(self) -> int:
        return self._data.count(b"\n") + (not self._data.endswith(b"\n"))

    def span(self, line: int) -> tuple[int, int]:
        """First byte of a line and the one after its last, the newline left out; an empty span behind the end."""
        while len(self._starts) <= line + 1:
            newline = self._data.find(b"\n", self._starts[-1])
            if newline < 0:
                start = self._starts[line] if line < len(self._starts) else len(self._data)
                return start, len(self._data)
            self._starts.append(newline + 1)
        return self._starts[line], self._starts[line + 1] - 1

    def line_at(self, offset: int) -> int:
        """The line in which a byte lies; the last one for an offset behind the end."""
        starts, data = self._starts, self._data
        while starts[-1] <= offset and (newline := data.find(b"\n", starts[-1])) >= 0:
            starts.append(newline + 1)
        return min(bisect_right(starts, offset) - 1, self.count - 1)


PIECE = 1 << 20
"""Bytes looked through at a time: short enough for a search to be called off, and to let others run in between."""

MAX_MATCHES = 100_000
"""Matches that are counted."""


class Matches(Record, frozen=True):
    """Matches of a needle, in ascending order: byte offsets, or row numbers."""

    offsets: tuple[int, ...] = ()

    def after(self, offset: int) -> int | None:
        """The next match behind an offset; after the last one comes the first."""
        return self.offsets[bisect_right(self.offsets, offset) % len(self.offsets)] if self.offsets else None

    def before(self, offset: int) -> int | None:
        """The last match before an offset; before the first one comes the last."""
        return self.offsets[bisect_left(self.offsets, offset) - 1] if self.offsets else None

    def rank(self, offset: int) -> int:
        """Return the number, from 1, of the match at an offset or the last one before it."""
        return bisect_right(self.offsets, offset)


def find(data: bytes, needle: str) -> Iterator[tuple[int, ...]]:
    """The matches, one piece of the text after the other. Capitals matter only if the needle has some."""
    wanted = needle.encode("utf-8", "surrogateescape")
    folded = needle.lower() == needle
    for start in range(0, len(data), PIECE):
        piece = data[start : start + PIECE + len(wanted) - 1]
        yield tuple(start + offset for offset in occurrences(piece.lower() if folded else piece, wanted))


def matches_in(text: str, needle: str) -> list[tuple[int, int]]:
    """The matches in a short text, as spans of characters."""
    text = text.lower() if needle.lower() == needle and len(text.lower()) == len(text) else text
    found = []
    position = text.find(needle)
    while position >= 0:
        found.append((position, position + len(needle)))
        position = text.find(needle, position + len(needle))
    return found
