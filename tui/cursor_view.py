"""Views of lines or rows, of which only those in view are drawn, with a cursor on one of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

CURSOR = "on $line-cursor"
LINKED = "on $line-linked"
"""Styles of lines and rows. A class of a component would be matched with all rules whenever the focus moves."""


def cursor_bindings(unit: str) -> tuple[Binding, ...]:
    """The keys of a cursor that is on one `unit`: a line, or a row."""
    return (
        Binding("up,k", "move(-1)", f"{unit} up", show=False),
        Binding("down,j", "move(1)", f"{unit} down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "page down", show=False),
        Binding("ctrl+u", "page(-0.5)", "half a page up", show=False),
        Binding("ctrl+d", "page(0.5)", "half a page down", show=False),
        Binding("g", "twice", f"gg: first {unit}", show=False),
        Binding("home", "edge(-1)", f"first {unit}", show=False),
        Binding("end,G", "edge(1)", f"last {unit}", show=False),
    )


class CursorView(ScrollView, can_focus=True, inherit_bindings=False):
    """Movement of the cursor; lines or rows count from 0."""

    cursor = reactive(0)
    _pressed_g = False

    @property
    def count(self) -> int:
        raise NotImplementedError

    @property
    def sign(self) -> str:
        """The sign before the cursor's line: filled in the focused pane."""
        return "▶" if self.has_focus else "▷"

    def rich(self, style: str | None) -> Style:
        return self.app.stylesheet.parse_style(style).rich_style if style else Style()

    def under_cursor(self, strip: Strip) -> Strip:
        """The cursor's line: reversed in a terminal's own colours, of which no two are known to be legible together."""
        if not self.app.current_theme.ansi:
            return strip
        plain = self.rich(CURSOR).bgcolor
        reversed_ = [
            Segment(text, style.without_color + Style(reverse=True) if style and style.bgcolor == plain else style)
            for text, style, _ in strip
        ]
        return Strip(reversed_, strip.cell_length)

    def move_to(self, position: int) -> None:
        """Put the cursor on a line or row, as the user does it."""
        raise NotImplementedError

    def validate_cursor(self, position: int) -> int:
        return min(max(position, 0), max(self.count - 1, 0))

    def watch_cursor(self) -> None:
        self._pressed_g = False
        self.refresh()

    watch_linked = watch_cursor

    def action_move(self, by: int) -> None:
        self.move_to(self.cursor + by)

    def action_edge(self, end: int) -> None:
        self.move_to(0 if end < 0 else self.count - 1)

    def action_twice(self) -> None:
        """Move the cursor to the first line or row when the key is pressed a second time."""
        if self._pressed_g:
            self.action_edge(-1)
        self._pressed_g = not self._pressed_g


class EntryView(CursorView):
    """A list of entries, each with a key; says which one the user moves to, or wants to see more of."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *cursor_bindings("row"),
        Binding("enter", "open", "open"),
    ]

    @dataclass
    class Moved(Message):
        """The user moved the cursor to another entry."""

        table: EntryView
        key: Hashable

        @property
        def control(self) -> EntryView:
            return self.table

    class Opened(Moved):
        """The user wants to see more of an entry: Enter, or a double click."""

    @property
    def keys(self) -> list[Hashable]:
        raise NotImplementedError

    def go_to(self, position: int) -> None:
        """Put the cursor on an entry and bring it into view; no message is posted."""
        raise NotImplementedError

    def find(self, needle: str) -> tuple[int, ...]:
        """The entries that hold a text, in capitals or not."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        return len(self.keys)

    def move_to(self, position: int) -> None:
        self.go_to(position)
        if self.count:
            self.post_message(self.Moved(self, self.keys[self.cursor]))

    def action_page(self, pages: float) -> None:
        self.move_to(self.cursor + round(pages * max(self.scrollable_content_region.height - 2, 1)))

    def action_open(self) -> None:
        if self.count:
            self.post_message(self.Opened(self, self.keys[self.cursor]))

    def reveal(self, top: int, bottom: int, head: int = 0) -> None:
        """Scroll so that the lines from `top` to `bottom` are in view, below so many lines that do not scroll."""
        if not self.scrollable_content_region.height:
            return  # not on the screen: where it will be in view is known when it is
        height = max(self.scrollable_content_region.height - head, 1)
        if top < self.scroll_offset.y or bottom - top >= height:
            self.scroll_to(y=top, animate=False, immediate=True, force=True)
        elif bottom >= self.scroll_offset.y + height:
            self.scroll_to(y=bottom - height + 1, animate=False, immediate=True, force=True)

    def drawn(self, line: Content, style_of_row: str = "") -> Strip:
        parse, width = self.app.stylesheet.parse_style, self.scrollable_content_region.width
        style = self.visual_style + parse(style_of_row)
        pieces = line.render(style, end="", parse_style=parse)
        strip = Strip([Segment(text, piece.rich_style) for text, piece in pieces])
        strip = strip.adjust_cell_length(width, style.rich_style)
        return self.under_cursor(strip) if style_of_row == CURSOR else strip

    def blank(self) -> Strip:
        return Strip.blank(self.scrollable_content_region.width, self.rich_style)
