"""All that is known of what is selected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from ..inspector.capture.model import Failure
from ..inspector.report import Collective, Finding, Report, ShardedValue
from ..inspector.selection.selection import Linked, ProbePlace, SourceLine, StagePlace
from .collective_details import collective_details
from .device_details import Window, device_details
from .entry_details import Selected, entry_details, explanation_details, finding_details
from .place_details import frames, line_text, place_details
from .sharding_details import sharding_details

NARROWEST = 24
"""Columns that a picture needs in any case."""


class InspectPane(VerticalScroll, can_focus=True):
    """A collective with its groups on the mesh, a line with its stack, or an entry of a table."""

    ALLOW_MAXIMIZE = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+left", "window(0, -1)", "window left", show=False),
        Binding("shift+right", "window(0, 1)", "window right", show=False),
        Binding("shift+up", "window(-1, 0)", "window up", show=False),
        Binding("shift+down", "window(1, 0)", "window down", show=False),
    ]

    report: reactive[Report | None] = reactive(None)
    selected: reactive[Selected | None] = reactive(None)
    linked: reactive[Linked | None] = reactive(None)
    line: reactive[str] = reactive("")

    def __init__(self) -> None:
        super().__init__()
        self._window = Window()

    def compose(self) -> ComposeResult:
        yield Static(id="inspect-text")

    def watch_selected(self) -> None:
        self._window = Window()
        self.scroll_home(animate=False)
        self.draw()

    def watch_linked(self) -> None:
        self.draw()

    def watch_line(self) -> None:
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def action_window(self, down: int, right: int) -> None:
        """Show another part of large arrays."""
        self._window = self._window.moved(down, right)
        self.draw()

    def draw(self) -> None:
        """Write it anew, for the space that there is."""
        width = max(self.scrollable_content_region.width, NARROWEST)
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
                    yield from collective_details(self.report, linked.collective, linked.causes, width, height)
                    yield Content("")
                    yield from frames(linked.stack, linked.collective.source.confidence, width)
                    yield from line_text(self.line, width)
            case ProbePlace(number):
                if self.report is not None and number < len(self.report.probes):
                    yield from device_details(self.report, number, self._window, width)
                    if linked is not None and linked.place == self.selected:
                        yield Content("")
                        yield from frames(linked.stack, "exact" if linked.stack else "none", width)
            case ShardedValue() as value if self.report is not None:
                known = linked if linked is not None and linked.place == value else None
                yield from sharding_details(self.report, value, known, width)
                if known is not None and known.stack:
                    yield Content("")
                    yield from frames(known.stack, "exact", width)
            case Finding() as found if self.report is not None:
                yield from finding_details(self.report, found, width)
                if linked is not None and linked.place == found and linked.stack:
                    yield Content("")
                    yield from frames(linked.stack, found.place.source.confidence, width)
            case ShardedValue() | Finding():
                return
            case Failure() as failure if self.report is not None:
                yield from explanation_details(self.report, width)
                yield from entry_details(failure, width)
            case entry:
                yield from entry_details(entry, width)
