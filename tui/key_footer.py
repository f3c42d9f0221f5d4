"""The last line: the keys that work here."""

from __future__ import annotations

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Footer

ALWAYS = ("help", "leave", "dismiss")
"""The ends of the actions that are never left out: what teaches the other keys, and what leads out."""


class KeyFooter(Footer):
    """The footer: as many keys as fit; those for help and for leaving are always shown."""

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)

    def compose(self) -> ComposeResult:
        keys = list(super().compose())
        room = self.app.size.width - sum(_width(key) for key in keys if _stays(key))
        for key in keys:
            if not _stays(key):
                room -= _width(key)
            if _stays(key) or room >= 0:
                yield key

    def on_resize(self, event: events.Resize) -> None:
        """Choose them anew."""
        self.call_after_refresh(self.recompose)


def _stays(key: Widget) -> bool:
    return str(getattr(key, "action", "")).endswith(ALWAYS)


def _width(key: Widget) -> int:
    """Its letters, the blank between key and words, and the one after them."""
    return sum(cell_len(getattr(key, part, "")) for part in ("key_display", "description")) + 2
