"""A table of any length, of which only the rows in view are drawn, in the columns that there is room for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby, takewhile
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip

from ..inspector.render.table import Column
from ..parsers.record import Record
from .cursor_view import CURSOR, LINKED, EntryView
from .painted import Row

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


MEASURED = 2000
"""Rows that decide how wide the columns are."""

SIGNS = 2
"""Columns to the left of a row, for the cursor and for what is linked."""


class RowTable(EntryView):
    """Rows with a cursor. Columns are cut, and the less important ones left out, where there is no room for them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "sort", "sort", tooltip="sort by the next column, as a click on its title"),
    ]

    linked: reactive[frozenset[Hashable]] = reactive(frozenset())
    nothing = reactive("")
    """Text for an empty table."""

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.columns = tuple(columns)
        self.rows: tuple[Row, ...] = ()
        self.sorted_by: int | None = None
        self._given: tuple[Row, ...] = ()
        self._grid = Grid()

    def show(self, rows: Sequence[Row]) -> None:
        """Show other rows; the cursor stays on the row of the same key, if it is still there."""
        self._given = tuple(rows)
        if self.sorted_by is not None and self.sorted_by >= len(self.columns):
            self.sorted_by = None
        self._arrange()

    def _arrange(self) -> None:
        measured = (row.texts for row in self._given[:MEASURED] if not row.spans)
        self._grid = grid_of(self.columns, measured, self.sorted_by)
        key = self.selected
        self.rows = self._given
        if (column := self.sorted_by) is not None:
            self.rows = tuple(sorted(self._given, key=lambda row: row.order(column)))
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows) + 1)
        keys = self.keys
        self.go_to(keys.index(key) if key in keys else 0)
        self.refresh()

    @property
    def keys(self) -> list[Hashable]:
        return [row.key for row in self.rows]

    @property
    def selected(self) -> Hashable:
        """The key of the row at the cursor; None in an empty table."""
        return self.rows[self.cursor].key if self.cursor < len(self.rows) else None

    @property
    def count(self) -> int:
        return len(self.rows)

    def go_to(self, position: int) -> None:
        self.cursor = position
        self.reveal(self.cursor, self.cursor, head=1)

    def go_to_key(self, keys: Sequence[Hashable]) -> None:
        """Put the cursor on the first row with one of these keys, unless it is on one of them."""
        if self.selected in keys:
            return
        for number, row in enumerate(self.rows):
            if row.key in keys:
                self.go_to(number)
                return

    def find(self, needle: str) -> tuple[int, ...]:
        texts = (" ".join(row.texts).lower() for row in self.rows)
        return tuple(number for number, text in enumerate(texts) if needle.lower() in text)

    def sort(self, column: int | None) -> None:
        """Sort by a column, the largest numbers first; None is the order in which the rows came."""
        self.sorted_by = column
        self._arrange()
        if self.rows:
            self.move_to(0)

    def action_sort(self) -> None:
        """Sort by the next column that has a title and anything below it, at last by none."""
        natural = self._grid.natural or (1,) * len(self.columns)
        titled = [None, *(n for n, column in enumerate(self.columns) if column.title and natural[n])]
        here = titled.index(self.sorted_by) if self.sorted_by in titled else 0
        self.sort(titled[(here + 1) % len(titled)])

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows) + 1)
        self.reveal(self.cursor, self.cursor, head=1)

    def on_click(self, event: events.Click) -> None:
        row = event.y - 1 + self.scroll_offset.y
        if event.button != 1:
            return
        if event.y == 0:
            column = self._grid.column_at(event.x - SIGNS, self.scrollable_content_region.width - SIGNS)
            if column is not None and self.columns[column].title:
                self.sort(None if column == self.sorted_by else column)
        elif row < len(self.rows):
            self.move_to(row)
            if event.chain == 2:
                self.action_open()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        number = y - 1 + self.scroll_offset.y
        if y == 0:
            signs = [SORTED if index == self.sorted_by else "" for index in range(len(self.columns))]
            titles = [Content(f"{column.title}{sign}") for column, sign in zip(self.columns, signs, strict=True)]
            line = self._grid.line(titles, width - SIGNS) if self.rows else Content(self.nothing)
            return self._strip(" ", line, "$aside")
        if number >= len(self.rows):
            return self.blank()
        row = self.rows[number]
        line = (self._grid.spanning if row.spans else self._grid.line)(row.cells, width - SIGNS)
        if number == self.cursor:
            return self._strip(self.sign, line, CURSOR)
        if row.key in self.linked:
            return self._strip("┃", line, LINKED)
        return self._strip(" ", line)

    def _strip(self, sign: str, line: Content, style: str = "") -> Strip:
        return self.drawn(Content.styled(f"{sign:<{SIGNS}}", "$primary") + line, style)
