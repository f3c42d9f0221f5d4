"""Looks for a word in the text or the table that had the focus, and goes from match to match."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from .cursor_view import EntryView
from .text_index import MAX_MATCHES, Matches, find
from .text_view import TextView

Searchable = TextView | EntryView


class Search:
    """One word in one pane. A text is looked through piece by piece, so that the screen goes on meanwhile.

    A match is at an offset of a text, or is the number of a row.
    """

    def __init__(self, target: Searchable, needle: str) -> None:
        self.target = target
        self.needle = needle
        self._matches = Matches()
        self._offset = self._line[0]

    @property
    def _line(self) -> tuple[int, int]:
        cursor = self.target.cursor
        return self.target.index.span(cursor) if isinstance(self.target, TextView) else (cursor, cursor)

    async def run(self, tell: Callable[[str], None]) -> None:
        """Find every match, and put the cursor on the first one that is not before it."""
        if isinstance(self.target, TextView):
            self.target.needle = self.needle
        if not self.needle:
            tell("")
            return
        begin, moved = self._offset, False
        offsets: list[int] = []
        for found in self._find():
            offsets += found
            if not moved and offsets and offsets[-1] >= begin:
                self._matches = Matches(tuple(offsets))
                self._go_to(self._matches.after(begin - 1))
                moved = True
            if len(offsets) >= MAX_MATCHES:
                break
            tell(f"{len(offsets):,} …")
            await asyncio.sleep(0)
        self._matches = Matches(tuple(offsets))
        if not moved:
            self._go_to(self._matches.after(begin - 1))
        tell(self._status())

    def _find(self) -> Iterable[tuple[int, ...]]:
        if isinstance(self.target, TextView):
            return find(self.target.source.data, self.needle)
        return [self.target.find(self.needle)]

    def step(self, direction: int) -> str:
        """Go to the next match, or to the one before; gives what there is to say about it."""
        start, end = self._line
        if not start <= self._offset <= end:
            self._offset = start
        self._go_to(self._matches.after(self._offset) if direction > 0 else self._matches.before(self._offset))
        return self._status() if self.needle else ""

    def _go_to(self, offset: int | None) -> None:
        if offset is not None:
            self._offset = offset
            go_to = self.target.jump if isinstance(self.target, TextView) else self.target.move_to
            go_to(offset)

    def _status(self) -> str:
        count = len(self._matches.offsets)
        if not count:
            return "not found"
        return f"{self._matches.rank(self._offset):,} of {count:,}{'+' if count >= MAX_MATCHES else ''}"
