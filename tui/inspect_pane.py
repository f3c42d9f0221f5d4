"""All that is known of what is selected."""

from __future__ import annotations

from collections.abc import Iterator

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from ..inspector.linked import Linked, SourceLine, StagePlace
from ..inspector.report import Collective, Report, ShardedValue
from .collective_details import collective_details
from .entry_details import entry_details
from .place_details import frames, line_text, place_details
from .selected import Selected
from .sharding_details import sharding_details

NARROWEST = 24
"""Columns that a picture needs in any case."""


class InspectPane(VerticalScroll, can_focus=True):
    """A collective with its groups on the mesh, a line with its stack, or an entry of a table."""

    ALLOW_MAXIMIZE = True

    report: reactive[Report | None] = reactive(None)
    selected: reactive[Selected | None] = reactive(None)
    linked: reactive[Linked | None] = reactive(None)
    line: reactive[str] = reactive("")

    def compose(self) -> ComposeResult:
        yield Static(id="inspect-text")

    def watch_selected(self) -> None:
        self.scroll_home(animate=False)
        self.draw()

    def watch_linked(self) -> None:
        self.draw()

    def watch_line(self) -> None:
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def draw(self) -> None:
        """Write it anew, for the space that there is."""
        width = max(self.scrollable_content_region.width - 2, NARROWEST)
        self.query_one("#inspect-text", Static).update(Content("\n").join(self._lines(width)))

    def _lines(self, width: int) -> Iterator[Content]:
        linked = self.linked
        match self.selected:
            case None:
                yield Content.styled("Select a line or a collective.", "$aside")
            case Collective() | SourceLine() | StagePlace():
                if linked is None or linked.place != self.selected:
                    return
                if linked.collective is None:
                    yield from place_details(linked, self.line, width)
                elif self.report is not None:
                    height = max(self.size.height // 2, 12)
                    yield from collective_details(self.report, linked.collective, width, height)
                    yield Content("")
                    yield from frames(linked.stack, linked.collective.source.confidence, width)
                    yield from line_text(self.line, width)
            case ShardedValue() as value if self.report is not None:
                yield from sharding_details(self.report, value, width)
                if linked is not None and linked.place == value and linked.stack:
                    yield Content("")
                    yield from frames(linked.stack, "exact", width)
            case ShardedValue():
                return
            case entry:
                yield from entry_details(entry, width)
