"""A view of lines or rows, of which only those in view are drawn, with a cursor on one of them."""

from __future__ import annotations

from textual.binding import Binding
from textual.reactive import reactive
from textual.scroll_view import ScrollView


def cursor_bindings(unit: str) -> tuple[Binding, ...]:
    """The keys of a cursor that is on one `unit`: a line, or a row."""
    return (
        Binding("up,k", "move(-1)", f"{unit} up", show=False),
        Binding("down,j", "move(1)", f"{unit} down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home", "edge(-1)", f"first {unit}", show=False),
        Binding("end", "edge(1)", f"last {unit}", show=False),
    )


class CursorView(ScrollView, can_focus=True):
    """What moves the cursor; the lines or rows count from 0."""

    cursor = reactive(0)

    @property
    def count(self) -> int:
        """The number of lines, or rows."""
        raise NotImplementedError

    def move_to(self, position: int) -> None:
        """Put the cursor on a line or row, as the user does it."""
        raise NotImplementedError

    def validate_cursor(self, position: int) -> int:
        return min(max(position, 0), max(self.count - 1, 0))

    def watch_cursor(self) -> None:
        self.refresh()

    watch_linked = watch_cursor

    def action_move(self, by: int) -> None:
        """Move the cursor up or down."""
        self.move_to(self.cursor + by)

    def action_edge(self, end: int) -> None:
        """Move the cursor to the first or the last line or row."""
        self.move_to(0 if end < 0 else self.count - 1)
