"""The first view: what a step takes, what matters, what is communicated, and what is in order."""

from __future__ import annotations

from collections.abc import Hashable

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip

from ..inspector.report import Report
from .cursor_view import CURSOR, EntryView
from .entry_details import Selected
from .overview import Part, overview, selectable

SIGNS = 2
"""Columns to the left of a line, for the cursor."""


class OverviewPane(EntryView):
    """Lines, some of which are about something that can be selected; the cursor goes from one of these to the next."""

    report: reactive[Report | None] = reactive(None)
    waiting: reactive[str] = reactive("")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._parts: tuple[Part, ...] = ()
        self._entries: list[tuple[int, Part]] = []
        self._lines: tuple[tuple[Content, int | None], ...] = ()

    def entry(self, key: object) -> Selected | None:
        """Return the subject of an entry."""
        return self._entries[key][1].about if isinstance(key, int) and key < len(self._entries) else None

    @property
    def first(self) -> Selected | None:
        """The subject of the first entry."""
        return self.entry(0)

    @property
    def keys(self) -> list[Hashable]:
        return list(range(len(self._entries)))

    def fill(self) -> None:
        """Write it anew, for the space that there is; the cursor stays on what it was on."""
        width = max(self.scrollable_content_region.width - SIGNS, 20)
        before = self.entry(self.cursor)
        if self.report is None:
            self._parts = (Part(tuple(Content.styled(f"{self.waiting} …", "$warning").split("\n"))),)
        else:
            self._parts = tuple(overview(self.report, self.waiting, width))
        self._entries = selectable(self._parts)
        numbers = {first: number for number, (first, _) in enumerate(self._entries)}
        lines: list[tuple[Content, int | None]] = []
        for part in self._parts:
            number = numbers.get(len(lines)) if part.about is not None else None
            lines += [(line, number) for line in part.lines]
        self._lines = tuple(lines)
        self.virtual_size = Size(width + SIGNS, len(lines))
        abouts = [part.about for _, part in self._entries]
        if before is not None and before in abouts:
            self.go_to(abouts.index(before))
        else:
            self.cursor = self.validate_cursor(self.cursor)
        self.refresh()

    watch_report = watch_waiting = on_resize = fill

    def go_to(self, position: int) -> None:
        self.cursor = position
        if self._entries:
            first, part = self._entries[self.cursor]
            # What stands above the first entry, and below the last, has no cursor that could bring it into view.
            top = 0 if self.cursor == 0 else first
            last = self.cursor == len(self._entries) - 1
            self.reveal(top, len(self._lines) - 1 if last else first + len(part.lines) - 1)

    def find(self, needle: str) -> tuple[int, ...]:
        texts = ("\n".join(line.plain for line in part.lines).lower() for _, part in self._entries)
        return tuple(number for number, text in enumerate(texts) if needle.lower() in text)

    def on_click(self, event: events.Click) -> None:
        line = event.y + self.scroll_offset.y
        if event.button == 1 and line < len(self._lines) and (number := self._lines[line][1]) is not None:
            self.move_to(number)
            if event.chain == 2:
                self.action_open()

    def render_line(self, y: int) -> Strip:
        number = y + self.scroll_offset.y
        if number >= len(self._lines):
            return self.blank()
        line, entry = self._lines[number]
        here = entry is not None and entry == self.cursor
        begins = here and (number == 0 or self._lines[number - 1][1] != entry)
        sign = Content.styled(f"{self.sign if begins else '':<{SIGNS}}", "$primary")
        return self.drawn(sign + line, CURSOR if here else "")
