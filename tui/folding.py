"""Debug information that is folded: parts of lines, and tables of lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from ..inspector.ir.language import DebugInfo
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
