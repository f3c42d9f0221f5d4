"""A line of tabs, one of which is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

LEAST = 4
"""Letters of a name that are kept before its count is."""

State = Literal["ready", "waiting", "failed"]


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab: `key` is what to press for it, `count` how much is behind it, where that can be counted."""

    id: str
    label: str
    key: str = ""
    count: int | None = None
    state: State = "ready"


class TabStrip(Widget):
    """Draws tabs and says which one was clicked; whoever owns it decides what is chosen."""

    tabs: reactive[tuple[Tab, ...]] = reactive(())
    chosen: reactive[str] = reactive("")
    hovered: reactive[str] = reactive("")

    @dataclass
    class Picked(Message):
        """A tab was clicked."""

        strip: TabStrip
        tab: str

        @property
        def control(self) -> TabStrip:
            """The strip in which it happened."""
            return self.strip

    def render(self) -> Content:
        return Content("").join(self._all_drawn())

    def on_click(self, event: events.Click) -> None:
        if (tab := self._at(event.x)) is not None:
            self.post_message(self.Picked(self, tab.id))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        tab = self._at(event.x)
        self.hovered = "" if tab is None else tab.id

    def on_leave(self) -> None:
        self.hovered = ""

    def _at(self, x: int) -> Tab | None:
        for tab, drawn in zip(self.tabs, self._all_drawn(), strict=True):
            x -= drawn.cell_length
            if x < 0:
                return tab
        return None

    def _all_drawn(self) -> list[Content]:
        """The tabs, with as much of each as there is room for: shorter names, then no counts, then both."""
        longest = max((len(tab.label) for tab in self.tabs), default=0)
        attempts = [(length, True) for length in range(longest, LEAST - 1, -1)]
        attempts += [(length, False) for length in range(longest, 1, -1)]
        for length, counted in attempts:
            drawn = [self._drawn(tab, counted, length) for tab in self.tabs]
            if sum(one.cell_length for one in drawn) <= self.size.width:
                return drawn
        return [self._drawn(tab, False, 1) for tab in self.tabs]

    def _drawn(self, tab: Tab, counted: bool, length: int) -> Content:
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
        key = (tab.key, "$aside") if tab.key else ""
        name = tab.label if tab.id == self.chosen and length >= LEAST else tab.label[:length].rstrip("/")
        label = f" {name}{'✗' if tab.state == 'failed' else ''}"
        shown = counted and tab.count is not None
        count = (f"({tab.count:,})", "$aside" if tab.id != self.chosen else "") if shown else ""
        return Content.assemble(
            " " if key else "", key, label, count, " " if tab.id == self.chosen else ""
        ).stylize_before(style)
