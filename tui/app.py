"""The screen, for a capture that is complete or still growing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.app import App
from textual.screen import Screen

from ..inspector.capture.model import Capture
from ..inspector.capture.spawn import Cancellation, Request, capture
from .feed import Feed
from .main_screen import MainScreen
from .palette import DARK, LIGHT, variables


def show(captured: Capture) -> None:
    """Show a capture until the user leaves."""
    ShardscopeApp((captured,)).run()


def show_live(request: Request) -> Capture:
    """Capture, and show it as it grows, until the user leaves; that ends the capture too. Gives what there is of it."""
    cancellation = Cancellation()
    app = ShardscopeApp(capture(request, cancellation), cancellation.cancel)
    app.run()
    return app.feed.stop()


class ShardscopeApp(App[None]):
    """One screen over one capture."""

    TITLE = "shardscope"
    CSS_PATH = "app.tcss"

    def __init__(self, captures: Iterable[Capture], cancel: Callable[[], None] = lambda: None) -> None:
        self.feed = Feed(captures, cancel)
        super().__init__()
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = DARK.name

    def get_default_screen(self) -> Screen[None]:
        return MainScreen(self.feed)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(self.current_theme)
