"""A text of any size, of which only the lines in view are decoded and coloured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.color import Color
from textual.geometry import Offset, Size
from textual.message import Message
from textual.reactive import reactive
from textual.selection import Selection
from textual.strip import Strip

from ..inspector.ir.language import KINDS
from ..inspector.render.printable import printable
from ..parsers.source import Source
from .cursor_view import CursorView, cursor_bindings
from .highlight import Highlighter, plain
from .text_index import LineIndex, matches_in

EMPTY = Source("", b"")

LONG = 4096
"""Bytes of a line beyond which only the piece in view is decoded; one byte then counts as one column."""

BEFORE = 256
"""Bytes decoded to the left of such a piece, so that the word at its edge is recognized."""

TAB = 4
MARK = "●"


class TextView(CursorView):
    """Lines with numbers, a cursor, marks, and the lines that are linked to what is selected elsewhere.

    Lines count from 0 here, and from 1 where they are shown.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "text-view--number",
        "text-view--cursor",
        "text-view--linked",
        "text-view--match",
        *(f"text-view--{kind}" for kind in KINDS),
    }

    BINDINGS: ClassVar[list[BindingType]] = [
        *cursor_bindings("line"),
        Binding("left,h,H", "sideways(-1)", "scroll left", show=False),
        Binding("right,l,L", "sideways(1)", "scroll right", show=False),
    ]

    linked: reactive[frozenset[int]] = reactive(frozenset())
    marks: reactive[Mapping[int, str]] = reactive({})
    needle = reactive("")

    @dataclass
    class Moved(Message):
        """The user moved the cursor to another line."""

        view: TextView
        line: int

        @property
        def control(self) -> TextView:
            """The view in which it happened."""
            return self.view

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.source = EMPTY
        self.index = LineIndex(b"")
        self._highlight: Highlighter = plain
        self._widest = 0
        self._strips: LRUCache[tuple[object, ...], Strip] = LRUCache(512)

    def show(self, source: Source, highlight: Highlighter = plain) -> None:
        """Show a text from its beginning; another version of the one that is shown, where one was in it."""
        before, there, cursor = self.source.name, self.scroll_offset, self.cursor
        self.source = source
        self.index = LineIndex(source.data)
        self._highlight = highlight
        self._widest = 0
        self.set_reactive(TextView.cursor, 0)
        self.set_reactive(TextView.linked, frozenset())
        self.set_reactive(TextView.marks, {})
        self._changed()
        self.scroll_to(0, 0, animate=False, immediate=True, force=True)
        if source.name == before:
            self.scroll_to(there.x, there.y, animate=False, immediate=True, force=True)
            self.cursor = cursor

    def first_byte(self, line: int) -> int:
        """Where the first word of a line begins."""
        start, end = self.index.span(line)
        text = self.source.data[start:end]
        return start + len(text) - len(text.lstrip())

    def go_to(self, line: int) -> None:
        """Put the cursor on a line and bring its beginning into view; no message is posted."""
        self.cursor = line
        if self.scroll_offset.x:
            self.scroll_to(x=0, animate=False, immediate=True, force=True)
        height = max(self.scrollable_content_region.height, 1)
        top = self.scroll_offset.y
        if not top <= self.cursor < top + height:
            self.scroll_to(y=max(0, self.cursor - height // 3), animate=False, immediate=True, force=True)

    def jump(self, offset: int) -> None:
        """Put the cursor on the line in which a byte lies, and bring the byte into view, as the user does it."""
        line = self.index.line_at(offset)
        column = offset - self.index.span(line)[0]
        left, width = self.scroll_offset.x, max(self.scrollable_content_region.width - self.margin_width, 1)
        if not left <= column < left + width:
            self._widen_to(line)
            self.scroll_to(x=max(0, column - width // 3), animate=False, immediate=True, force=True)
        self.move_to(line)

    @property
    def number_width(self) -> int:
        """Digits of the last line's number."""
        return max(3, len(str(self.index.count)))

    @property
    def margin_width(self) -> int:
        """Columns to the left of the text."""
        return self.number_width + 4

    @property
    def count(self) -> int:
        return self.index.count

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._widen()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def selection_updated(self, selection: Selection | None) -> None:
        self._changed()

    def on_click(self, event: events.Click) -> None:
        line = event.y + self.scroll_offset.y
        if event.button == 1 and line < self.index.count:
            self.move_to(line)

    def action_page(self, pages: float) -> None:
        """Move the cursor by views, or parts of one, and the view with it."""
        height = round(max(self.scrollable_content_region.height - 1, 1) * pages)
        self.scroll_to(y=self.scroll_offset.y + height, animate=False, immediate=True, force=True)
        self.move_to(self.cursor + height)

    def action_sideways(self, direction: int) -> None:
        """Scroll by half a view."""
        half = max((self.scrollable_content_region.width - self.margin_width) // 2, 1)
        self.scroll_to(x=self.scroll_offset.x + half * direction, animate=False, immediate=True, force=True)

    def move_to(self, position: int) -> None:
        before, left = self.cursor, self.scroll_offset.x
        self.go_to(position)
        if left:  # who has scrolled a text to the side reads on there
            self.scroll_to(x=left, animate=False, immediate=True, force=True)
        if self.cursor != before or not self.linked:
            self.post_message(self.Moved(self, self.cursor))

    def _changed(self) -> None:
        self._strips.clear()
        self.virtual_size = Size(self._widest + self.margin_width, self.index.count)
        self._widen()
        self.refresh()

    watch_marks = watch_needle = _changed

    def _widen(self) -> None:
        """Let the text scroll as far sideways as the longest line that was in view so far."""
        top = self.scroll_offset.y
        self._widen_to(*range(top, min(top + self.scrollable_content_region.height, self.index.count)))

    on_resize = _widen

    def _widen_to(self, *lines: int) -> None:
        widest = max((end - start for start, end in map(self.index.span, lines)), default=0)
        if widest > self._widest:
            self._widest = widest
            self.virtual_size = Size(widest + self.margin_width + 1, self.index.count)

    def text_of(self, line: int) -> str:
        """The text of a line, the first million bytes of it; empty where there is no such line."""
        return self._decoded(line, 0, 1 << 20)

    def _decoded(self, line: int, first: int, count: int) -> str:
        start, end = self.index.span(line)
        data = self.source.data[start + first : min(end, start + first + count)]
        return printable(data.removesuffix(b"\r").decode("utf-8", "replace"))

    def render_line(self, y: int) -> Strip:
        line = y + self.scroll_offset.y
        x, width = self.scroll_offset.x, self.scrollable_content_region.width
        if line >= self.index.count:
            return Strip.blank(width, self.rich_style)
        key = (line, x, width, line == self.cursor, self.has_focus, line in self.linked)
        if (strip := self._strips.get(key)) is None:
            strip = self._strips[key] = self._drawn(line, x, width)
        return strip

    def _drawn(self, line: int, x: int, width: int) -> Strip:
        row = self._row_style(line)
        number = row + self.get_component_rich_style("text-view--number", partial=True)
        sign = self.sign if line == self.cursor else "┃" if line in self.linked else " "
        mark = self.marks.get(line)
        gutter = [
            Segment(sign, row + self.get_component_rich_style("text-view--keyword", partial=True)),
            Segment(f"{line + 1:>{self.number_width}} ", number),
            Segment(f"{MARK if mark else ' '} ", row + self._hue(mark)),
        ]
        shown = width - self.margin_width
        text, left = self._coloured(line, x, shown, row)
        strip = Strip(text.render(self.app.console))
        strip = strip.crop_extend(left, left + shown, row).apply_offsets(x, line)
        return Strip.join([Strip(gutter), strip])

    def _coloured(self, line: int, x: int, shown: int, row: Style) -> tuple[Text, int]:
        """The part of a line that holds the columns in view, and how many columns of it are left of them."""
        start, end = self.index.span(line)
        first = max(x - BEFORE, 0) if end - start > LONG else 0
        content = self._decoded(line, first, x - first + shown + BEFORE if end - start > LONG else end - start)
        text = Text(content, no_wrap=True, end="")
        text.stylize(row)
        for begin, stop, kind in self._highlight(-1 if first else line, content):
            text.stylize(self.get_component_rich_style(f"text-view--{kind}", partial=True), begin, stop)
        if self.needle:
            match = self.get_component_rich_style("text-view--match", partial=True)
            for begin, stop in matches_in(content, self.needle):
                text.stylize(match, begin, stop)
        if "\t" in content:
            text.expand_tabs(TAB)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(line)) is not None:
            style = self.screen.get_component_rich_style("screen--selection")
            text.stylize(style, span[0] - first, len(text) if span[1] < 0 else span[1] - first)
        return text, x - first

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that was selected with the mouse."""
        start, end = selection.start or Offset(0, 0), selection.end or Offset(0, self.index.count)
        lines = [self.text_of(line) for line in range(start.y, min(end.y + 1, self.index.count))]
        if lines and end.y < self.index.count:
            lines[-1] = lines[-1][: end.x]
        if lines:
            lines[0] = lines[0][start.x :]
        return "\n".join(lines), "\n"

    def _row_style(self, line: int) -> Style:
        style = self.rich_style
        if line == self.cursor:
            return style + self.get_component_rich_style("text-view--cursor", partial=True)
        if line in self.linked:
            return style + self.get_component_rich_style("text-view--linked", partial=True)
        return style

    def _hue(self, variable: str | None) -> Style:
        if not variable:
            return Style()
        return Style.from_color(Color.parse(self.app.theme_variables[variable.removeprefix("$")]).rich_color)
