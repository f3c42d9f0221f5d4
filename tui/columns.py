"""Columns of a table on lines of limited width: which are shown, and how wide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, takewhile

from rich.cells import cell_len
from textual.content import Content

from ..inspector.render.table import Column
from ..parsers.record import Record

BETWEEN = 2
"""Blank columns between two of a table."""


def fitted(columns: Sequence[Column], natural: Sequence[int], width: int) -> tuple[tuple[int, int], ...]:
    """The columns that are shown, as pairs of index and width. `natural` is the width that each would need.

    The more important a column is, the sooner it gets what it needs; those that are equally important share. Numbers
    and titles are whole or not there. Columns that need nothing are left out.
    """
    least = [
        need if column.align == "right" else min(need, max(column.least, len(column.title)))
        for column, need in zip(columns, natural, strict=True)
    ]
    by_importance = sorted(range(len(columns)), key=lambda index: -columns[index].importance)
    shown = [index for index in by_importance if natural[index]] or by_importance[:1]
    while len(shown) > 1 and sum(least[index] + BETWEEN for index in shown) - BETWEEN > width:
        shown.pop()
    left = width + BETWEEN - sum(least[index] + BETWEEN for index in shown)
    widths = {index: least[index] for index in shown}
    for _, equals in groupby(shown, key=lambda index: columns[index].importance):
        # Who needs least comes first, so that what it does not take is left for the others.
        waiting = sorted(equals, key=lambda index: natural[index] - widths[index])
        for place, index in enumerate(waiting):
            more = min(natural[index] - widths[index], max(left, 0) // (len(waiting) - place))
            widths[index] += more
            left -= more
    return tuple(sorted(widths.items()))


class Grid(Record, frozen=True):
    """Columns with the width that each needs for all its cells."""

    columns: tuple[Column, ...] = ()
    natural: tuple[int, ...] = ()

    def line(self, cells: Sequence[Content], width: int) -> Content:
        """The cells of a row in that many columns of the screen; the less important ones are left out."""
        shown = fitted(self.columns, self.natural, width)
        return Content(" " * BETWEEN).join(self._cell(cells[index], index, size) for index, size in shown)

    def spanning(self, cells: Sequence[Content], width: int) -> Content:
        """The cells as one text, below the first column that has a title."""
        shown = fitted(self.columns, self.natural, width)
        signs = takewhile(lambda each: not self.columns[each[0]].title, shown)
        indent = sum(size + BETWEEN for _, size in signs)
        text = Content(" " * BETWEEN).join(cell for cell in cells if cell.plain)
        return text.truncate(max(width - indent, 1), ellipsis=True).pad_left(indent)

    def column_at(self, x: int, width: int) -> int | None:
        """The column that is drawn at a position of such a line."""
        for index, size in fitted(self.columns, self.natural, width):
            if 0 <= x < size + BETWEEN:
                return index
            x -= size + BETWEEN
        return None

    def _cell(self, cell: Content, index: int, width: int) -> Content:
        cell = cell.truncate(width, ellipsis=True)
        blank = width - cell.cell_length
        return cell.pad_left(blank) if self.columns[index].align == "right" else cell.pad_right(blank)


def grid_of(columns: Sequence[Column], rows: Iterable[Sequence[str]], sorted_by: int | None = None) -> Grid:
    """The grid in which the widest cell of each column has room, and the sign of the sorted one; none for a column
    that has nothing in it."""
    titles = [len(column.title) + (number == sorted_by) for number, column in enumerate(columns)]
    widths = [0] * len(columns)
    for row in rows:
        widths = [max(width, cell_len(text)) for width, text in zip(widths, row, strict=True)]
    has_any = any(widths)
    return Grid(
        tuple(columns),
        tuple(max(width, title) if width or not has_any else 0 for width, title in zip(widths, titles, strict=True)),
    )


SORTED = "▼"
"""After the title of the column by which rows are sorted."""
