"""Tabs on a line, or on two, one of which is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from ..parsers.record import Record

MOST_LINES = 2

LEAST = 4
"""Letters of a name that are kept before its count is."""

State = Literal["ready", "waiting", "failed"]


class Tab(Record, frozen=True):
    """One tab: `key` is what to press for it, `count` how much is behind it, where that can be counted.

    `note` is shown of all tabs, or else of the chosen one, where there is room on one line.
    """

    id: str
    label: str
    key: str = ""
    count: int | None = None
    state: State = "ready"
    note: str = ""


class TabStrip(Widget):
    """Draws tabs and says which one was clicked; whoever owns it decides what is chosen."""

    tabs: reactive[tuple[Tab, ...]] = reactive((), layout=True)
    chosen: reactive[str] = reactive("")
    hovered: reactive[str] = reactive("")

    @dataclass
    class Picked(Message):
        """A tab was clicked."""

        strip: TabStrip
        tab: str

        @property
        def control(self) -> TabStrip:
            return self.strip

    def render(self) -> Content:
        return Content("\n").join(Content("").join(drawn for _, drawn in line) for line in self._lines(self.size.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def on_click(self, event: events.Click) -> None:
        if (tab := self._at(event.x, event.y)) is not None:
            self.post_message(self.Picked(self, tab.id))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        tab = self._at(event.x, event.y)
        self.hovered = "" if tab is None else tab.id

    def on_leave(self) -> None:
        self.hovered = ""

    def _at(self, x: int, y: int) -> Tab | None:
        for tab, drawn in self._lines(self.size.width)[y]:
            x -= drawn.cell_length
            if x < 0:
                return tab
        return None

    def _lines(self, width: int) -> list[list[tuple[Tab, Content]]]:
        """The tabs, with as much of each as there is room for: shorter names, then no counts, then both."""
        longest = max((len(tab.label) for tab in self.tabs), default=0)
        attempts = [(length, True) for length in range(longest, LEAST - 1, -1)]
        attempts += [(length, False) for length in range(longest, 0, -1)]
        lines: list[list[tuple[Tab, Content]]] = [[]]
        for noted in ({tab.id for tab in self.tabs}, {self.chosen}):
            tabs = [(tab, self._drawn(tab, True, longest, tab.note if tab.id in noted else "")) for tab in self.tabs]
            lines = self._broken(tabs, width)
            if len(lines) == 1:
                return lines
        for length, counted in attempts:
            lines = self._broken([(tab, self._drawn(tab, counted, length)) for tab in self.tabs], width)
            if len(lines) <= MOST_LINES:
                return lines
        return lines[:MOST_LINES]

    def _broken(self, tabs: Sequence[tuple[Tab, Content]], width: int) -> list[list[tuple[Tab, Content]]]:
        lines: list[list[tuple[Tab, Content]]] = [[]]
        left = width
        for tab, drawn in tabs:
            if drawn.cell_length > left and lines[-1]:
                lines.append([])
                left = width
            lines[-1].append((tab, drawn))
            left -= drawn.cell_length
        return lines

    def _drawn(self, tab: Tab, counted: bool, length: int, note: str = "") -> Content:
        style = "$text-muted"
        match tab.state:
            case "waiting":
                style = "$aside"
            case "failed":
                style = "$error"
        if tab.id == self.chosen:
            style = "bold $primary on $panel"
        elif tab.id == self.hovered:
            style = "$foreground on $panel"
        key = (f"{tab.key} ", "$aside") if tab.key else ""
        label = f"{tab.label[:length].rstrip('/')}{'✗' if tab.state == 'failed' else ''}"
        shown = counted and tab.count is not None
        count = (f"({tab.count:,})", "$aside" if tab.id != self.chosen else "") if shown else ""
        noted = (f" {note}", "$aside" if tab.id != self.chosen else "") if note else ""
        return Content.assemble(" ", key, label, count, noted).stylize_before(style)
