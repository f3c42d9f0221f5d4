"""Texts and places in them.

Texts are kept as the bytes that were read: dumps reach hundreds of megabytes, and searching bytes is faster than
decoding them first. Offsets are byte offsets; lines and columns, both counted from 1, are computed when one is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .record import Record

EXCERPT_WIDTH = 100
"""Most characters of a line that an excerpt shows; a compiler's line may have millions."""

_EXCERPT_BYTES = 4 * EXCERPT_WIDTH
"""Most bytes that so many characters have."""


class Span(Record, frozen=True, order=True):
    """The bytes from `start` up to, not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A named text. Two sources are equal only when they are the same object: texts may be large."""

    name: str
    data: bytes = field(repr=False)

    def text(self, span: Span | None = None) -> str:
        """The characters of a span, or of all of it; bytes that are not UTF-8 come out as replacement characters."""
        data = self.data if span is None else self.data[span.start : span.end]
        return data.decode("utf-8", "replace")

    def line_around(self, offset: int) -> Span:
        """The line that the byte at an offset is on, without its line break."""
        start, end = self.data.rfind(b"\n", 0, offset) + 1, self.data.find(b"\n", offset)
        return Span(start, len(self.data) if end < 0 else end)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1; the column counts characters, not bytes."""
        offset = min(max(offset, 0), len(self.data))
        line = self.data.count(b"\n", 0, offset) + 1
        start = self.data.rfind(b"\n", 0, offset) + 1
        return line, len(self.text(Span(start, offset))) + 1

    def excerpt(self, span: Span) -> str:
        """The line on which the span starts, and under it carets below the span.

        Of a long line only the part around the span is drawn. Control characters are drawn as `�`, so that a dump's
        text can be printed to a terminal as it is.
        """
        first = self.data.rfind(b"\n", 0, span.start) + 1
        last = self.data.find(b"\n", first)
        last = len(self.data) if last < 0 else last
        # What is cut off here can not be inside the window.
        left = max(first, span.start - _EXCERPT_BYTES)
        right = min(last, max(span.end, span.start) + _EXCERPT_BYTES)
        before = _drawable(self.text(Span(left, min(span.start, last))))
        marked = _drawable(self.text(Span(min(span.start, last), max(min(span.end, right), span.start))))
        after = _drawable(self.text(Span(max(min(span.end, right), min(span.start, last)), right)))
        before_cut = before[-EXCERPT_WIDTH // 2 :]
        lead = "…" if left > first or len(before_cut) < len(before) else ""
        line = (before_cut + marked + after)[:EXCERPT_WIDTH]
        tail = "…" if right < last or len(before_cut + marked + after) > EXCERPT_WIDTH else ""
        carets = "^" * max(1, min(len(marked), EXCERPT_WIDTH - len(before_cut)))
        number = str(self.position(span.start)[0])
        gutter = " " * len(number)
        return f"{number} | {lead}{line}{tail}\n{gutter} | {' ' * (len(lead) + len(before_cut))}{carets}"


class Frame(Record, frozen=True):
    """One frame of a recorded call stack.

    Lines count from 1; columns are as recorded, and JAX records Python's, which count from 0. A line of 0 stands for a
    position that was not recorded, an empty function for a name that was not.
    """

    file: str
    function: str
    line: int
    end_line: int = 0
    column: int = 0
    end_column: int = 0


def occurrences(data: bytes, word: bytes) -> Iterator[int]:
    """The offsets of a word, also of those that overlap, in ascending order."""
    offset = data.find(word)
    while offset >= 0:
        yield offset
        offset = data.find(word, offset + 1)


def name_set(names: str | Iterable[str]) -> frozenset[str]:
    """Names as a set; a string is one of them, and not its letters."""
    return frozenset((names,) if isinstance(names, str) else names)


def _drawable(text: str) -> str:
    return "".join(c if c.isprintable() else " " if c == "\t" else "�" for c in text)
