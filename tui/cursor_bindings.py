"""The keys that move a cursor up and down."""

from __future__ import annotations

from textual.binding import Binding


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
