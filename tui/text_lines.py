"""The lines of a text as they are shown: decoded, folded, and wrapped."""

from __future__ import annotations

from rich.cells import cell_len

from ..inspector.ir.language import DebugInfo
from ..inspector.render.printable import printable
from ..parsers.source import Source
from .folding import Folded, Folding, folded
from .text_index import LineIndex

EMPTY = Source("", b"")

LONG = 4096
"""Bytes of a line beyond which only the piece in view is decoded; one byte then counts as one column."""


class TextLines:
    """A text, whose lines count from 0."""

    def __init__(self, source: Source, debug: DebugInfo | None = None) -> None:
        self.source = source
        self.index = LineIndex(source.data)
        self.folding = Folding(source, self.index, debug)

    def first_byte(self, line: int) -> int:
        """Return the offset of a line's first word."""
        start, end = self.index.span(line)
        text = self.source.data[start:end]
        return start + len(text) - len(text.lstrip())

    def text_of(self, line: int) -> str:
        """The whole text of a line, the first million bytes of it; empty where there is no such line."""
        return self.decoded(line, 0, 1 << 20)

    def decoded(self, line: int, first: int, count: int) -> str:
        """So many bytes of a line, as text."""
        start, end = self.index.span(line)
        data = self.source.data[start + first : min(end, start + first + count)]
        return printable(data.removesuffix(b"\r").decode("utf-8", "replace"))

    def width_of(self, line: int) -> int:
        """Columns of a line, where each byte takes one."""
        start, end = self.index.span(line)
        return end - start - sum(stop - begin - 1 for begin, stop in self.folding.cuts(line))

    def is_long(self, line: int) -> bool:
        """Return whether only a piece of a line can be shown."""
        return self.width_of(line) > LONG

    def displayed(self, line: int) -> Folded:
        """A line, which is not long, as it is shown."""
        start, end = self.index.span(line)
        return folded(self.decoded(line, 0, end - start), self.folding.cuts(line), self.source.data[start:end])

    def character(self, line: int, column: int) -> int:
        """Return the character of a whole line in a column."""
        return column if self.is_long(line) else self.displayed(line).character(column)

    def between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """The text from one line and column to another, as they are shown."""
        lines = [self.text_of(line) for line in range(start[0], min(end[0] + 1, self.index.count))]
        if lines and end[0] < self.index.count:
            lines[-1] = lines[-1][: self.character(*end)]
        if lines:
            lines[0] = lines[0][self.character(*start) :]
        return "\n".join(lines)


MAX_INDENT = 8


def indent_of(text: str, width: int) -> int:
    """Columns before the second and further rows of a line."""
    return min(len(text) - len(text.lstrip()) + 4, MAX_INDENT, width // 3)


def rows_of(text: str, width: int, most: int) -> list[tuple[int, int]]:
    """The spans of characters on each row; the rows after `most` are left out."""
    rows: list[tuple[int, int]] = []
    start = indent = 0
    while len(rows) < most:
        end = _end(text, start, max(width - indent, 8))
        rows.append((start, end))
        if end >= len(text):
            break
        start, indent = end, indent_of(text, width)
    return rows


def _end(text: str, start: int, width: int) -> int:
    """Return the end of a row: after the last blank or comma on it, else where it is full."""
    end = min(start + width, len(text))
    while end > start + 1 and cell_len(text[start:end]) > width:
        end -= 1
    if end == len(text):
        return end
    return max(text.rfind(" ", start + width // 2, end), text.rfind(",", start + width // 2, end)) + 1 or end
