"""A table of any length, of which only the rows in view are drawn."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip

from ..inspector.render.table import Column
from .columns import SORTED, Grid, grid_of
from .cursor_view import CURSOR, LINKED, EntryView
from .painted import Row

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
