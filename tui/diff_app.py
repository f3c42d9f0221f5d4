"""The screen of a diff, until the user leaves."""

from __future__ import annotations

from textual.app import App
from textual.screen import Screen

from ..inspector.diff.diff import Diff
from .diff_screen import DiffScreen
from .palette import DARK, LIGHT, variables


def show_diff(found: Diff) -> None:
    """Show what differs, and the texts of both sides, until the user leaves."""
    DiffApp(found).run()


class DiffApp(App[None]):
    """One screen over one diff."""

    TITLE = "shardscope"
    CSS_PATH = "app.tcss"

    def __init__(self, found: Diff) -> None:
        self._found = found
        super().__init__()
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = DARK.name

    def get_default_screen(self) -> Screen[None]:
        return DiffScreen(self._found)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(self.current_theme)
