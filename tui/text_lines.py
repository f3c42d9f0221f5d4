"""The lines of a text as they are shown: decoded, folded, and wrapped."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from rich.cells import cell_len

from ..inspector.ir.language import DebugInfo
from ..inspector.render.printable import printable
from ..parsers.record import Record
from ..parsers.source import Source
from .text_index import LineIndex

FOLD = "…"

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}()\[\]]')


class Table(Record, frozen=True):
    """Lines of which all but the first are hidden."""

    first: int
    end: int
    """The line behind the last."""


class Folding:
    """The folded parts of a text, and those that the user unfolded.

    A position is the number of a line among those that are shown. Tables are found by their heads, and what is folded
    in a line when it is drawn: nothing is done for each line of a text.
    """

    def __init__(self, source: Source, index: LineIndex, debug: DebugInfo | None) -> None:
        self.active = True
        self._data = source.data
        self._index = index
        self._debug = debug
        self._tables = () if debug is None else tuple(_tables(source.data, debug))
        self._opened: set[Table] = set()
        self._unfolded: set[int] = set()

    @property
    def possible(self) -> bool:
        """True if a text of this language may hold debug information."""
        return self._debug is not None

    @property
    def _hidden(self) -> list[Table]:
        return [table for table in self._tables if table not in self._opened] if self.active else []

    @property
    def count(self) -> int:
        return self._index.count - sum(table.end - table.first - 1 for table in self._hidden)

    def line(self, position: int) -> int:
        line = max(position, 0)
        for table in self._hidden:
            if line > table.first:
                line += table.end - table.first - 1
        return min(line, max(self._index.count - 1, 0))

    def position(self, line: int) -> int:
        """Return the row of a line; of a hidden one, that of its table."""
        hidden = 0
        for table in self._hidden:
            if line > table.first:
                hidden += min(line, table.end - 1) - table.first
        return line - hidden

    def lines_hidden_at(self, line: int) -> int:
        """Return the number of lines hidden behind a visible one."""
        return next((table.end - table.first - 1 for table in self._hidden if table.first == line), 0)

    def cuts(self, line: int) -> list[tuple[int, int]]:
        """The bytes of a line that are hidden, as spans from its beginning."""
        if not self.active or self._debug is None or line in self._unfolded:
            return []
        start, end = self._index.span(line)
        return list(_folds(self._data[start:end], self._debug.attribute))

    def reveal(self, line: int, column: int | None = None) -> bool:
        """Unfold what hides a line, or a byte of it; whether anything did."""
        table = next((each for each in self._hidden if each.first < line < each.end), None)
        if table is not None:
            self._opened.add(table)
            return True
        if column is not None and any(start <= column < end for start, end in self.cuts(line)):
            self._unfolded.add(line)
            return True
        return False

    def toggle(self, line: int) -> bool:
        """Fold or unfold one line, or the table that it heads; whether there is anything to fold."""
        table = next((each for each in self._tables if each.first <= line < each.end), None)
        if table is not None:
            self._opened ^= {table}
            return True
        self._unfolded ^= {line}
        return bool(self.cuts(line)) or line in self._unfolded


class Folded(Record, frozen=True):
    """A line as it is shown: `cuts` are the spans of characters that `FOLD` stands for."""

    text: str
    cuts: tuple[tuple[int, int], ...] = ()

    def column(self, character: int) -> int:
        """Return the column of a character of the whole line."""
        shift = 0
        for start, end in self.cuts:
            if character <= start:
                break
            shift += min(character, end) - start - len(FOLD)
        return max(character - shift, 0)

    def character(self, column: int) -> int:
        """Return the character of the whole line in a column."""
        return bisect_right(range(1 << 30), column, key=self.column) - 1 if self.cuts else column


def folded(line: str, cuts: list[tuple[int, int]], encoded: bytes) -> Folded:
    """A line without the spans of bytes that are cut."""
    if not cuts:
        return Folded(line)
    spans = [(_characters(encoded, start), _characters(encoded, end)) for start, end in cuts]
    pieces, at = [], 0
    for start, end in spans:
        pieces += [line[at:start], FOLD]
        at = end
    return Folded("".join((*pieces, line[at:])), tuple(spans))


def _characters(encoded: bytes, end: int) -> int:
    return end if encoded.isascii() else len(encoded[:end].decode("utf-8", "replace"))


def _tables(data: bytes, debug: DebugInfo) -> Iterator[Table]:
    line, counted, at = 0, 0, 0
    while at < len(data):
        if not data.startswith(debug.table_head, at):
            at = data.find(b"\n" + debug.table_head, at) + 1
            if not at:
                return
        rows = debug.table_rows.match(data, at)
        if rows is None:
            return
        line += data.count(b"\n", counted, at)
        length = rows[0].rstrip(b"\n").count(b"\n") + 1
        if length > 1:
            yield Table(line, line + length)
        line += rows[0].count(b"\n")
        counted = at = max(rows.end(), at + 1)


def _folds(line: bytes, attribute: re.Pattern[bytes]) -> Iterator[tuple[int, int]]:
    """Return the spans between the brackets or quotes of each attribute of a line."""
    behind = 0
    for match in attribute.finditer(line):
        if match.start() < behind:
            continue
        depth, start = 0, match.end()
        for bracket in _BRACKETS.finditer(line, start):
            depth += (bracket[0] in b"{([") - (bracket[0] in b"})]")
            if depth <= 0:
                behind = bracket.end() - 1
                break
        else:
            return
        if behind - start > len(FOLD) + 1:
            yield start + 1, behind


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
