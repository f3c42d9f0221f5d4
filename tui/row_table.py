"""A table of any length, of which only the rows in view are drawn."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from ..inspector.render.table import Column
from .cursor_view import CursorView, cursor_bindings

BETWEEN = 2
"""Blank columns between two of a table."""


def fitted(columns: Sequence[Column], natural: Sequence[int], width: int) -> tuple[tuple[int, int], ...]:
    """The columns that are shown, as pairs of index and width. `natural` is the width that each would need.

    The more important a column is, the sooner it gets what it needs; those that are equally important share.
    """
    least = [min(need, column.least) for column, need in zip(columns, natural, strict=True)]
    by_importance = sorted(range(len(columns)), key=lambda index: -columns[index].importance)
    shown = list(by_importance)
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


MEASURED = 2000
"""Rows that decide how wide the columns are."""

SIGNS = 2
"""Columns to the left of a row, for the cursor and for what is linked."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: `key` says what it is about."""

    key: Hashable
    cells: tuple[Content, ...]


class RowTable(CursorView):
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

    def find(self, needle: str) -> tuple[int, ...]:
        """The rows that hold a text, in capitals or not."""
        texts = (" ".join(cell.plain for cell in row.cells).lower() for row in self.rows)
        return tuple(number for number, text in enumerate(texts) if needle.lower() in text)

    @property
    def count(self) -> int:
        return len(self.rows)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows) + 1)

    def on_click(self, event: events.Click) -> None:
        row = event.y - 1 + self.scroll_offset.y
        if event.button == 1 and event.y > 0 and row < len(self.rows):
            self.move_to(row)
            if event.chain == 2:
                self.action_open()

    def move_to(self, position: int) -> None:
        self.go_to(position)
        if self.rows:
            self.post_message(self.Moved(self, self.rows[self.cursor].key))

    def action_page(self, pages: int) -> None:
        """Move the cursor by whole views."""
        self.move_to(self.cursor + pages * max(self.scrollable_content_region.height - 2, 1))

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
