"""A text of any size, of which only the lines in view are decoded and coloured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Size
from textual.message import Message
from textual.selection import Selection

from ..inspector.ir.language import DebugInfo
from ..parsers.source import Source
from .cursor_view import cursor_bindings
from .drawn_text import DrawnText, Highlighter, plain
from .text_lines import TextLines


class TextView(DrawnText):
    """The keys of a text, and where it is scrolled to.

    What scrolls are the positions of lines that are not folded; where lines are wrapped, as much is drawn of each as
    there is room for.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *cursor_bindings("line"),
        Binding("left,h,H", "sideways(-1)", "scroll left", show=False),
        Binding("right,l,L", "sideways(1)", "scroll right", show=False),
        Binding("w", "wrap", "wrap", tooltip="wrap long lines, or cut them at the edge"),
        Binding("m", "fold", "fold", tooltip="fold metadata, backend_config and tables of locations, or show them"),
        Binding("space", "fold_here", "fold here", show=False, tooltip="fold, or unfold, this line alone"),
    ]

    _searched_to = 0
    """The column to which a search has scrolled, for as long as one searches."""

    _height = 0
    """The lines of the view before it was resized."""

    @dataclass
    class Moved(Message):
        """The user moved the cursor to another line."""

        view: TextView
        line: int

        @property
        def control(self) -> TextView:
            return self.view

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

    def text_of(self, line: int) -> str:
        return self.lines.text_of(line)

    def go_to(self, line: int) -> None:
        """Put the cursor on a line and bring its beginning into view; no message is posted."""
        if self.lines.folding.reveal(line):
            self._changed()
        self.cursor = line
        if self.scroll_offset.x:
            self.scroll_to(x=0, animate=False, immediate=True, force=True)
        self._bring_into_view()

    def _bring_into_view(self) -> None:
        top = self._layout.top_to_see(self.lines.folding.position(self.cursor), self.scroll_offset.y)
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, immediate=True, force=True)

    def jump(self, offset: int) -> None:
        """Put the cursor on the line in which a byte lies, and bring the byte into view, as the user does it."""
        line = self.index.line_at(offset)
        byte = offset - self.index.span(line)[0]
        if self.lines.folding.reveal(line) | self.lines.folding.reveal(line, byte):
            self._changed()
        column = self.lines.displayed(line).column(byte) if not self.lines.is_long(line) else byte
        if self.wrapped:
            self.wrapped = any(row.first <= column < row.last for row in self._layout.rows_of(line))
        left, width = self.scroll_offset.x, self._shown_width
        if not self.wrapped and not left <= column < left + width:
            self._widen_to(line)
            self.scroll_to(x=max(0, column - width // 3), animate=False, immediate=True, force=True)
            self._searched_to = self.scroll_offset.x
        self._move_to(line, self.scroll_offset.x)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._widen()

    def selection_updated(self, selection: Selection | None) -> None:
        self._changed()

    def on_click(self, event: events.Click) -> None:
        if event.button == 1 and event.y < len(self.rows):
            self.move_to(self.rows[event.y].line)

    def action_move(self, by: int) -> None:
        self.move_to(self.lines.folding.line(self.lines.folding.position(self.cursor) + by))

    def action_edge(self, end: int) -> None:
        self._move_to(0 if end < 0 else self.lines.folding.line(self.lines.folding.count - 1), 0)

    def action_page(self, pages: float) -> None:
        """Move the cursor by views, or parts of one, and the view with it."""
        lines = len({row.line for row in self.rows})
        by = round(max(lines - 1, 1) * pages)
        self.scroll_to(y=self.scroll_offset.y + by, animate=False, immediate=True, force=True)
        self.action_move(by)

    def action_wrap(self) -> None:
        self.wrapped = not self.wrapped

    def action_fold(self) -> None:
        self.lines.folding.active = not self.lines.folding.active
        self._refolded()

    def action_fold_here(self) -> None:
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
        half = max(self._shown_width // 2, 1)
        self.scroll_to(x=self.scroll_offset.x + half * direction, animate=False, immediate=True, force=True)

    def move_to(self, position: int) -> None:
        left = self.scroll_offset.x  # who has scrolled a text to the side reads on there, where there is text
        has_text = self.lines.width_of(self.validate_cursor(position)) > left
        self._move_to(position, left if has_text and left != self._searched_to else 0)

    def _move_to(self, position: int, left: int) -> None:
        self.go_to(position)
        if left:
            self.scroll_to(x=left, animate=False, immediate=True, force=True)
        self.post_message(self.Moved(self, self.cursor))

    def _changed(self) -> None:
        self._strips.clear()
        self._rows = None
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
        self._widen_to(*(row.line for row in self.rows))

    def on_resize(self) -> None:
        below_top = self.lines.folding.position(self.cursor) - self.scroll_offset.y
        was_in_view = 0 <= below_top < self._height
        self._height = self.scrollable_content_region.height or self._height
        self._changed()
        if was_in_view:
            self._bring_into_view()

    def _widen_to(self, *lines: int) -> None:
        widest = max(map(self.lines.width_of, lines), default=0)
        if widest > self._widest and not self.wrapped:
            self._widest = widest
            self._resize()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        start, end = selection.start or Offset(0, 0), selection.end or Offset(0, self.index.count)
        return self.lines.between((start.y, start.x), (end.y, end.x)), "\n"
