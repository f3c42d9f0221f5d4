"""The screen, for a capture that is complete or still growing, for one on each of several targets, or for a diff."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.screen import Screen

from ..inspector.capture.model import Capture
from ..inspector.capture.spawn import CaptureHandle
from ..inspector.report import Report
from ..inspector.report.analyses import Analyses
from ..inspector.report.changes import Diff
from ..inspector.report.traces import Trace
from .analyst import Improve
from .commands import Everything
from .diff_screen import DiffScreen
from .edit_loop import EditLoop
from .feed import Feed
from .key_footer import KeyFooter
from .main_screen import MainScreen
from .painted import THEMES, usual_theme, variables
from .prompt import Prompt
from .ranks_screen import RanksScreen
from .side_by_side import SideBySide
from .terminal_door import PrintableFilter, end_input, guarded
from .trace_screen import CapturesOf, TraceScreen

PRINTABLE = PrintableFilter()


def show(captured: Capture, analyses: Analyses) -> None:
    """Show a capture until the user leaves."""
    ShardscopeApp((captured,), analyses).run()


def show_live(
    begun: CaptureHandle, analyses: Analyses, improve: Callable[..., Report], *, watch: bool = False
) -> tuple[Capture, Report | None]:
    """Show a capture as it grows, until the user leaves; that ends the capture too.

    Returns what there is of it, and its last report by `improve`, which makes a better one of a report and a request.
    With `watch` it is captured again whenever a file of it is saved.
    """
    feed = Feed(begun.captures, begun.cancellation.cancel)
    loop = EditLoop(begun.request, watch)
    shown: Report | None = None

    def improved(report: Report, *, tell: Callable[[str], None], show: Callable[[Report], None]) -> Report:
        nonlocal shown
        shown = improve(report, loop.request, tell=tell, show=show)
        return shown

    try:
        ShardscopeApp(feed, analyses, improve=improved, loops=(loop,)).run()
    finally:
        last = feed.stop()
    return last, shown if shown is not None and shown.capture.stages == last.stages else None


def show_targets(captures: Sequence[CaptureHandle], analyses: Analyses) -> tuple[Capture, ...]:
    """Show captures for several targets, one at a time or all side by side, as `show_live` does."""
    feeds = [Feed(begun.captures, begun.cancellation.cancel) for begun in captures]
    app = ShardscopeApp(feeds[0], analyses, others=feeds[1:], loops=[EditLoop(each.request) for each in captures])
    try:
        app.run()
    finally:
        last = tuple(feed.stop() for feed in feeds)
    return last


def show_diff(found: Diff) -> None:
    """Show what differs, and the texts of both sides, until the user leaves."""
    ScreenApp(DiffScreen, found).run()


def show_trace(trace: Trace, captures_of: CapturesOf, analyses: Analyses) -> None:
    """Show the programs of a trace, and the report of any of them, until the user leaves."""
    ScreenApp(TraceScreen, trace, captures_of, analyses).run()


def show_ranks(trace: Trace, analyses: Analyses) -> None:
    """Show where the processes of a run differ, until the user leaves."""
    ScreenApp(RanksScreen, trace, analyses).run()


class ThemedApp(App[None]):
    """Its colours are those of the palette, and what it draws controls no terminal."""

    TITLE = "shardscope"
    CSS_PATH = "app.tcss"
    COMMANDS = {Everything}  # noqa: RUF012 (as Textual declares it)
    ALLOW_IN_MAXIMIZED_VIEW = f"{KeyFooter.__name__}, {Prompt.__name__}"

    def __init__(self) -> None:
        super().__init__()
        self.driver_class = guarded(self.driver_class)
        for theme in THEMES:
            self.register_theme(theme)
        wanted = usual_theme(os.environ, self.available_themes)
        if self.theme == wanted:  # Textual takes the name of a theme before that is known, and later sees no change
            self.theme = next(theme.name for theme in THEMES if theme.name != wanted)
        self.theme = wanted

    def run(self, *arguments: Any, **options: Any) -> None:
        try:
            super().run(*arguments, **options)
        finally:
            if self._driver is not None:
                end_input(self._driver)

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), PRINTABLE]

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(self.current_theme)


class ScreenApp(ThemedApp):
    """One screen, over what it is made of."""

    def __init__(self, screen: Callable[..., Screen[None]], *shown: object) -> None:
        self._screen = partial(screen, *shown)
        super().__init__()

    def get_default_screen(self) -> Screen[None]:
        return self._screen()


class ShardscopeApp(ThemedApp):
    """One screen over one capture; with several targets one for each, in a mode of its own."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "next_target", "next target"),
        Binding("T", "side_by_side", "targets", tooltip="the collectives of all targets side by side"),
    ]

    def __init__(
        self,
        captures: Iterable[Capture] | Feed,
        analyses: Analyses,
        cancel: Callable[[], None] = lambda: None,
        others: Sequence[Feed] = (),
        improve: Improve | None = None,
        loops: Sequence[EditLoop] = (),
    ) -> None:
        """`loops` capture again what the feeds have, in their order; none where that cannot be."""
        self.feed = captures if isinstance(captures, Feed) else Feed(captures, cancel)
        self.feeds = (self.feed, *others)
        self._analyses = analyses
        self._shown = 0
        self._targets = [loop.request.target for loop in loops]
        self._screens = [
            partial(MainScreen, feed, analyses, None if others else improve, loop)
            for feed, loop in zip_longest(self.feeds, loops)
        ]
        super().__init__()
        if others:
            for number, screen in enumerate(self._screens):
                self.add_mode(_mode(number), screen)

    def get_default_screen(self) -> Screen[None]:
        return self._screens[0]() if len(self.feeds) == 1 else Screen()

    async def on_mount(self) -> None:
        for feed in self.feeds[1:]:
            feed.start(lambda message: None)
        if len(self.feeds) > 1:
            await self.switch_mode(_mode(0))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Targets can be switched where there are several, and nothing lies over the screen."""
        if action in ("next_target", "side_by_side", "diff"):
            return len(self.feeds) > 1 and isinstance(self.screen, MainScreen)
        return super().check_action(action, parameters)

    async def action_next_target(self) -> None:
        self._shown = (self._shown + 1) % len(self.feeds)
        await self.switch_mode(_mode(self._shown))

    def action_side_by_side(self) -> None:
        programs = [feed.latest for feed in self.feeds]
        subjects = zip_longest([program.capture.subject for program in programs], self._targets)
        targets = [(subject and subject.target) or asked or "target not known" for subject, asked in subjects]
        analyses = self._analyses
        self.push_screen(SideBySide(lambda: analyses.compare(targets, list(map(analyses.inspect, programs)))))

    def action_diff(self) -> None:
        """Show what differs between the first target and the one that is shown, else the second."""
        one, other = self.feeds[0].latest, self.feeds[self._shown or 1].latest
        if isinstance(self.screen, MainScreen):
            inspect = self._analyses.inspect
            self.screen.show_diff(lambda: inspect(one).diff_to(inspect(other)))


def _mode(number: int) -> str:
    return f"target-{number}"
