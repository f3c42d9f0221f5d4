"""The text of one stage, with the stages as tabs above it."""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.reactive import reactive
from textual.widgets import Static

from ..inspector.capture.model import STAGES, Capture
from ..inspector.report import Collective
from ..inspector.selection.selection import Linked, StagePlace
from ..parsers.source import Source
from .highlight import of_dialect
from .palette import collective_hue
from .stage_notice import notice
from .stage_tabs import stage_tabs
from .tab_strip import TabStrip
from .text_view import TextView


class StagePane(Vertical):
    """Shows the chosen stage, or what there is to say while it is not there."""

    ALLOW_MAXIMIZE = True

    capture: reactive[Capture] = reactive(Capture())
    stage = reactive("")
    linked: reactive[Linked | None] = reactive(None)

    def compose(self) -> ComposeResult:
        yield TabStrip(id="stages")
        yield TextView(id="stage-text")
        with VerticalScroll(id="stage-notice"):
            yield Static(id="stage-notice-text")

    @property
    def view(self) -> TextView:
        """The text."""
        return self.query_one("#stage-text", TextView)

    def watch_capture(self) -> None:
        self._refresh()

    def watch_stage(self) -> None:
        self._refresh()

    def watch_linked(self, linked: Linked | None) -> None:
        """Show which lines belong to what is selected, and bring the first one into view."""
        view = self.view
        lines = () if linked is None else [view.index.line_at(span.start) for span in linked.spans]
        view.linked = frozenset(lines)
        here = linked is not None and isinstance(linked.place, StagePlace) and linked.place.stage == self.stage
        if lines and not here:
            view.go_to(lines[0])

    def show(self, stage: str, source: Source) -> None:
        """Show the text of a stage; which one is chosen, this pane may be told only after it."""
        if self.view.source is not source:
            self.view.show(source, of_dialect(STAGES[stage]))

    def mark(self, collectives: tuple[Collective, ...], hues: Mapping[str, str]) -> None:
        """Mark the lines in which the collectives stand."""
        view = self.view
        view.marks = {
            view.index.line_at(collective.span.start): collective_hue(collective.axes, hues)
            for collective in collectives
        }

    def _refresh(self) -> None:
        strip = self.query_one(TabStrip)
        strip.tabs = stage_tabs(self.capture)
        strip.chosen = self.stage
        there = self.capture.stage(self.stage) is not None
        self.view.display = there
        self.query_one("#stage-notice").display = not there
        if not there:
            self.query_one("#stage-notice-text", Static).update(notice(self.capture))
