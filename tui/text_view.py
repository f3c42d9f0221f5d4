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

from ..inspector.ir.language import KINDS, DebugInfo
from ..parsers.source import Source
from .cursor_view import CursorView, cursor_bindings
from .folding import FOLD
from .highlight import Highlighter, plain
from .text_index import LineIndex, matches_in
from .text_lines import EMPTY, TextLines
from .wrapping import indent_of, rows_of

BEFORE = 256
"""Bytes decoded to the left of such a piece, so that the word at its edge is recognized."""

TAB = 4
MARK = "●"


class TextView(CursorView):
    """Lines with numbers, a cursor, marks, and the lines that are linked to what is selected elsewhere.

    Lines count from 0 here, and from 1 where they are shown. What scrolls are the positions of lines that are not
    folded; where lines are wrapped, as much is drawn of each as there is room for.
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
        Binding("w", "wrap", "wrap", tooltip="wrap long lines, or cut them at the edge"),
        Binding("m", "fold", "fold", tooltip="fold metadata, backend_config and tables of locations, or show them"),
        Binding("space", "fold_here", "fold here", show=False, tooltip="fold, or unfold, this line alone"),
    ]

    linked: reactive[frozenset[int]] = reactive(frozenset())
    marks: reactive[Mapping[int, str]] = reactive({})
    needle = reactive("")
    wrapped = reactive(False)

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
        self.lines = TextLines(EMPTY)
        self._highlight: Highlighter = plain
        self._widest = 0
        self._rows: tuple[tuple[int, int], list[tuple[int, int, int]]] = (0, 0), []
        self._strips: LRUCache[tuple[object, ...], Strip] = LRUCache(512)

    def show(self, source: Source, highlight: Highlighter = plain, debug: DebugInfo | None = None) -> None:
        """Show a text from its beginning; another version of the one that is shown, where one was in it."""
        before, there, cursor, folds = self.source.name, self.scroll_offset, self.cursor, self.lines.folding.active
        self.lines = TextLines(source, debug)
        self.lines.folding.active = folds
        self.refresh_bindings()
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

    @property
    def source(self) -> Source:
        """The text."""
        return self.lines.source

    @property
    def index(self) -> LineIndex:
        """Where its lines begin."""
        return self.lines.index

    def text_of(self, line: int) -> str:
        """The whole text of a line."""
        return self.lines.text_of(line)

    def go_to(self, line: int) -> None:
        """Put the cursor on a line and bring its beginning into view; no message is posted."""
        if self.lines.folding.reveal(line):
            self._changed()
        self.cursor = line
        if self.scroll_offset.x:
            self.scroll_to(x=0, animate=False, immediate=True, force=True)
        height = max(self.scrollable_content_region.height, 1)
        top, position = self.scroll_offset.y, self.lines.folding.position(self.cursor)
        if not top <= position < top + height:
            top = max(0, position - height // 3)
        if self.wrapped:
            top = max(top, self._highest_with(position, height))
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, immediate=True, force=True)

    def _highest_with(self, position: int, height: int) -> int:
        """The first position from which all rows of a line are in view."""
        top = position + 1
        while top and (height := height - len(self._rows_of(self.lines.folding.line(top - 1)))) >= 0:
            top -= 1
        return min(top, position)

    def jump(self, offset: int) -> None:
        """Put the cursor on the line in which a byte lies, and bring the byte into view, as the user does it."""
        line = self.index.line_at(offset)
        byte = offset - self.index.span(line)[0]
        if self.lines.folding.reveal(line) | self.lines.folding.reveal(line, byte):
            self._changed()
        column = self.lines.displayed(line).column(byte) if not self.lines.is_long(line) else byte
        if self.wrapped:
            self.wrapped = any(start <= column < end for start, end in self._rows_of(line))
        left, width = self.scroll_offset.x, max(self.scrollable_content_region.width - self.margin_width, 1)
        if not self.wrapped and not left <= column < left + width:
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

    @property
    def _shown_width(self) -> int:
        return max(self.scrollable_content_region.width - self.margin_width, 1)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._widen()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def selection_updated(self, selection: Selection | None) -> None:
        self._changed()

    def on_click(self, event: events.Click) -> None:
        rows = self._rows_in_view()
        if event.button == 1 and event.y < len(rows):
            self.move_to(rows[event.y][0])

    def action_move(self, by: int) -> None:
        """Move the cursor up or down."""
        self.move_to(self.lines.folding.line(self.lines.folding.position(self.cursor) + by))

    def action_edge(self, end: int) -> None:
        """Move the cursor to the first or the last line."""
        self.move_to(0 if end < 0 else self.lines.folding.line(self.lines.folding.count - 1))

    def action_page(self, pages: float) -> None:
        """Move the cursor by views, or parts of one, and the view with it."""
        lines = len({line for line, *_ in self._rows_in_view()})
        by = round(max(lines - 1, 1) * pages)
        self.scroll_to(y=self.scroll_offset.y + by, animate=False, immediate=True, force=True)
        self.action_move(by)

    def action_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self.wrapped = not self.wrapped

    def action_fold(self) -> None:
        """Fold all debug information, or unfold it."""
        self.lines.folding.active = not self.lines.folding.active
        self._refolded()

    def action_fold_here(self) -> None:
        """Fold or unfold what is in the line of the cursor."""
        if self.lines.folding.toggle(self.cursor):
            self._refolded()
        else:
            self.notify("There is nothing to fold in this line.")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.lines.folding.possible or not action.startswith("fold")

    def _refolded(self) -> None:
        self._widest = 0
        self._changed()
        self.go_to(self.lines.folding.line(self.lines.folding.position(self.cursor)))

    def watch_wrapped(self) -> None:
        self._refolded()

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
        self._rows = (0, 0), []
        self._resize()
        self._widen()
        self.refresh()

    def _resize(self) -> None:
        """Room for what can be scrolled to: of wrapped lines, the last one can be at the top."""
        if self.wrapped:
            below = max(self.scrollable_content_region.height - 1, 0)
            self.virtual_size = Size(0, self.lines.folding.count + below)
        else:
            self.virtual_size = Size(self._widest + self.margin_width + bool(self._widest), self.lines.folding.count)

    watch_marks = watch_needle = _changed

    def _widen(self) -> None:
        """Let the text scroll as far sideways as the longest line that was in view so far."""
        self._widen_to(*(line for line, *_ in self._rows_in_view()))

    def on_resize(self) -> None:
        self._changed()

    def _widen_to(self, *lines: int) -> None:
        widest = max(map(self.lines.width_of, lines), default=0)
        if widest > self._widest and not self.wrapped:
            self._widest = widest
            self._resize()

    def _rows_of(self, line: int) -> list[tuple[int, int]]:
        """The characters on each row of a wrapped line, as many as there is room for."""
        width, height = self._shown_width, max(self.scrollable_content_region.height, 1)
        is_long = self.lines.is_long(line)
        text = self.lines.decoded(line, 0, width * height) if is_long else self.lines.displayed(line).text
        return rows_of(text, width, height)

    def _rows_in_view(self) -> list[tuple[int, int, int]]:
        """The line on each row in view, and which of its characters."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if self._rows[0] != (top, height):
            rows: list[tuple[int, int, int]] = []
            for position in range(top, min(top + height, self.lines.folding.count)):
                line = self.lines.folding.line(position)
                spans = self._rows_of(line) if self.wrapped else [(self.scroll_offset.x, -1)]
                rows += [(line, *span) for span in spans]
                if len(rows) >= height:
                    break
            self._rows = (top, height), rows[:height]
        return self._rows[1]

    def render_line(self, y: int) -> Strip:
        rows, x, width = self._rows_in_view(), self.scroll_offset.x, self.scrollable_content_region.width
        if y >= len(rows):
            return Strip.blank(width, self.rich_style)
        line, start, end = rows[y]
        key = (line, start, end, x, width, line == self.cursor, self.has_focus, line in self.linked)
        if (strip := self._strips.get(key)) is None:
            span = (start, end) if self.wrapped else (x, x + self._shown_width)
            strip = self._strips[key] = self._drawn(line, *span, width)
        return strip

    def _drawn(self, line: int, first: int, last: int, width: int) -> Strip:
        row = self._row_style(line)
        number = row + self.get_component_rich_style("text-view--number", partial=True)
        mark, begins = self.marks.get(line), not self.wrapped or first == 0
        sign = self.sign if line == self.cursor and begins else "┃" if line in self.linked else " "
        gutter = [
            Segment(sign, row + self.get_component_rich_style("text-view--keyword", partial=True)),
            Segment(f"{line + 1 if begins else '':>{self.number_width}} ", number),
            Segment(f"{MARK if mark and begins else ' '} ", row + self._hue(mark)),
        ]
        text, left = self._coloured(line, first, last - first, row)
        strip = Strip(text.render(self.app.console))
        indent = 0 if begins else indent_of(text.plain, self._shown_width)
        strip = strip.crop(left, left + last - first).apply_offsets(first, line)
        strip = Strip.join([Strip([Segment(" " * indent, row)]), strip]).adjust_cell_length(self._shown_width, row)
        return Strip.join([Strip(gutter), strip])

    def _coloured(self, line: int, x: int, shown: int, row: Style) -> tuple[Text, int]:
        """The part of a line that holds the columns in view, and how many columns of it are left of them."""
        is_long = self.lines.is_long(line)
        first = max(x - BEFORE, 0) if is_long else 0
        piece = self.lines.decoded(line, first, x - first + shown + BEFORE) if is_long else ""
        content = piece if is_long else self.lines.displayed(line).text
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
        if hidden := self.lines.folding.lines_hidden_at(line):
            text.append(f" {FOLD} {hidden:,} lines", self.get_component_rich_style("text-view--aside", partial=True))
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
            lines[-1] = lines[-1][: self.lines.character(end.y, end.x)]
        if lines:
            lines[0] = lines[0][self.lines.character(start.y, start.x) :]
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
