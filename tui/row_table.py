"""A table of any length, of which only the rows in view are drawn."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from .columns import BETWEEN, Column, fitted
from .cursor_bindings import cursor_bindings

MEASURED = 2000
"""Rows that decide how wide the columns are."""

SIGNS = 2
"""Columns to the left of a row, for the cursor and for what is linked."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: `key` says what it is about."""

    key: Hashable
    cells: tuple[Content, ...]


class RowTable(ScrollView, can_focus=True):
    """Rows with a cursor. Columns are cut, and the less important ones left out, where there is no room for them."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "row-table--head",
        "row-table--cursor",
        "row-table--linked",
        "row-table--sign",
    }

    BINDINGS: ClassVar[list[BindingType]] = [
        *cursor_bindings("row"),
        Binding("enter", "open", "open", show=False),
    ]

    cursor = reactive(0)
    linked: reactive[frozenset[Hashable]] = reactive(frozenset())
    nothing = reactive("")
    """What is said where there are no rows."""

    @dataclass
    class Moved(Message):
        """The user moved the cursor to another row."""

        table: RowTable
        key: Hashable

        @property
        def control(self) -> RowTable:
            """The table in which it happened."""
            return self.table

    class Opened(Moved):
        """The user wants to see more of a row: Enter, or a double click."""

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.columns = tuple(columns)
        self.rows: tuple[Row, ...] = ()
        self._natural: tuple[int, ...] = ()

    def show(self, rows: Sequence[Row]) -> None:
        """Show other rows; the cursor stays on the row of the same key, if it is still there."""
        key = self.rows[self.cursor].key if self.cursor < len(self.rows) else None
        self.rows = tuple(rows)
        measured = self.rows[:MEASURED]
        self._natural = tuple(
            max([len(column.title), *(row.cells[index].cell_length for row in measured)])
            for index, column in enumerate(self.columns)
        )
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows) + 1)
        keys = [row.key for row in self.rows]
        self.go_to(keys.index(key) if key in keys else 0)
        self.refresh()

    def go_to(self, row: int) -> None:
        """Put the cursor on a row and bring it into view; nobody is told."""
        self.cursor = row
        height = max(self.scrollable_content_region.height - 1, 1)
        top = self.scroll_offset.y
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, immediate=True, force=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, immediate=True, force=True)

    def go_to_key(self, keys: Sequence[Hashable]) -> None:
        """Put the cursor on the first row with one of these keys, unless it is on one of them."""
        if self.cursor < len(self.rows) and self.rows[self.cursor].key in keys:
            return
        for number, row in enumerate(self.rows):
            if row.key in keys:
                self.go_to(number)
                return

    def find(self, needle: str, direction: int) -> int | None:
        """The next row, or the one before, that holds a text, in capitals or not; for 0 also the row one is on."""
        count = len(self.rows)
        for step in range(direction != 0, count + (direction != 0)):
            number = (self.cursor + step * (direction or 1)) % count
            if needle.lower() in " ".join(cell.plain for cell in self.rows[number].cells).lower():
                return number
        return None

    def validate_cursor(self, row: int) -> int:
        return min(max(row, 0), max(len(self.rows) - 1, 0))

    def watch_cursor(self) -> None:
        self.refresh()

    def watch_linked(self) -> None:
        self.refresh()

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows) + 1)

    def on_click(self, event: events.Click) -> None:
        row = event.y - 1 + self.scroll_offset.y
        if event.button == 1 and event.y > 0 and row < len(self.rows):
            self.move_to(row)
            if event.chain == 2:
                self.action_open()

    def move_to(self, row: int) -> None:
        """Put the cursor on a row, as the user does it."""
        self.go_to(row)
        if self.rows:
            self.post_message(self.Moved(self, self.rows[self.cursor].key))

    def action_move(self, rows: int) -> None:
        """Move the cursor up or down."""
        self.move_to(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by whole views."""
        self.move_to(self.cursor + pages * max(self.scrollable_content_region.height - 2, 1))

    def action_edge(self, end: int) -> None:
        """Move the cursor to the first or the last row."""
        self.move_to(0 if end < 0 else len(self.rows) - 1)

    def action_open(self) -> None:
        """See more of the row under the cursor."""
        if self.rows:
            self.post_message(self.Opened(self, self.rows[self.cursor].key))

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        number = y - 1 + self.scroll_offset.y
        if y == 0:
            titles = [Content(column.title) for column in self.columns]
            line = self._line(titles, width) if self.rows else Content(self.nothing)
            return self._strip(" ", line, "row-table--head", width)
        if number >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        row = self.rows[number]
        line = self._line(row.cells, width)
        if number == self.cursor:
            return self._strip("▶", line, "row-table--cursor", width)
        if row.key in self.linked:
            return self._strip("┃", line, "row-table--linked", width)
        return self._strip(" ", line, None, width)

    def _line(self, cells: Sequence[Content], width: int) -> Content:
        shown = fitted(self.columns, self._natural, width - SIGNS)
        return Content(" " * BETWEEN).join(self._cell(cells[index], index, size) for index, size in shown)

    def _strip(self, sign: str, line: Content, component: str | None, width: int) -> Strip:
        style = self.visual_style
        if component is not None:
            style += self.get_visual_style(component, partial=True)
        line = Content.styled(f"{sign:<{SIGNS}}", self.get_visual_style("row-table--sign", partial=True)) + line
        pieces = line.render(style, end="", parse_style=self.app.stylesheet.parse_style)
        strip = Strip([Segment(text, piece.rich_style) for text, piece in pieces])
        return strip.adjust_cell_length(width, style.rich_style)

    def _cell(self, cell: Content, index: int, width: int) -> Content:
        cell = cell.truncate(width, ellipsis=True)
        blank = width - cell.cell_length
        return cell.pad_left(blank) if self.columns[index].align == "right" else cell.pad_right(blank)
