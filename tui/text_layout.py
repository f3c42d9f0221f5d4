"""Lines of a text on the rows of a view, and their visible characters."""

from __future__ import annotations

from typing import NamedTuple

from ..parsers.record import Record
from .text_lines import TextLines
from .wrapping import rows_of


class Row(NamedTuple):
    """The characters of a line from `first` to before `last`; whether the line `begins` there."""

    line: int
    first: int
    last: int
    begins: bool


class TextLayout(Record, frozen=True):
    """A text in a view of so many columns and rows, with its lines cut from column `left` on, or wrapped: None.

    Positions are those of lines that are not folded.
    """

    lines: TextLines
    width: int
    height: int
    left: int | None

    def rows_of(self, line: int) -> list[Row]:
        """The rows of a line, as many as there is room for."""
        if self.left is not None:
            return [Row(line, self.left, self.left + self.width, begins=True)]
        height = max(self.height, 1)
        is_long = self.lines.is_long(line)
        text = self.lines.decoded(line, 0, self.width * height) if is_long else self.lines.displayed(line).text
        return [Row(line, *span, begins=span[0] == 0) for span in rows_of(text, self.width, height)]

    def rows_from(self, top: int) -> list[Row]:
        """The rows in view if a position is at the top."""
        rows: list[Row] = []
        folding = self.lines.folding
        for position in range(top, min(top + self.height, folding.count)):
            rows += self.rows_of(folding.line(position))
            if len(rows) >= self.height:
                break
        return rows[: self.height]

    def top_to_see(self, position: int, top: int) -> int:
        """The position at the top from which all rows of one are in view; `top` if they are."""
        height = max(self.height, 1)
        if not top <= position < top + height:
            top = max(0, position - height // 3)
        return top if self.left is not None else max(top, self._highest_with(position, height))

    def _highest_with(self, position: int, height: int) -> int:
        top = position + 1
        while top and (height := height - len(self.rows_of(self.lines.folding.line(top - 1)))) >= 0:
            top -= 1
        return min(top, position)
