"""Looks for a word in the text or the table that had the focus, and goes from match to match."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .row_table import RowTable
from .text_index import MOST, Matches, find
from .text_view import TextView

Searchable = TextView | RowTable


class Search:
    """One word in one pane. A text is looked through piece by piece, so that the screen goes on meanwhile."""

    def __init__(self, target: Searchable, needle: str) -> None:
        self.target = target
        self.needle = needle
        self._matches = Matches(needle)
        self._offset = 0
        if isinstance(target, TextView):
            self._offset = target.index.span(target.cursor)[0]

    async def run(self, tell: Callable[[str], None]) -> None:
        """Find every match, and put the cursor on the first one that is not before it."""
        if isinstance(self.target, RowTable):
            tell(self._row(0))
            return
        self.target.needle = self.needle
        if not self.needle:
            tell("")
            return
        begin, moved = self._offset, False
        data = self.target.source.data
        offsets: list[int] = []
        for found in find(data, self.needle):
            offsets += found
            if not moved and offsets and offsets[-1] >= begin:
                self._matches = Matches(self.needle, tuple(offsets))
                self._go_to(self._matches.after(begin - 1))
                moved = True
            if len(offsets) >= MOST:
                break
            tell(f"{len(offsets):,} …")
            await asyncio.sleep(0)
        self._matches = Matches(self.needle, tuple(offsets), complete=True)
        if not moved:
            self._go_to(self._matches.after(begin - 1))
        tell(self._status())

    def step(self, direction: int) -> str:
        """Go to the next match, or to the one before; gives what there is to say about it."""
        if isinstance(self.target, RowTable):
            return self._row(direction)
        here = self.target.index.span(self.target.cursor)[0]
        start, end = self.target.index.span(self.target.cursor)
        if not start <= self._offset <= end:
            self._offset = here
        self._go_to(self._matches.after(self._offset) if direction > 0 else self._matches.before(self._offset))
        return self._status()

    def _go_to(self, offset: int | None) -> None:
        if offset is not None and isinstance(self.target, TextView):
            self._offset = offset
            self.target.jump(offset)

    def _status(self) -> str:
        count = len(self._matches.offsets)
        if not count:
            return "not found"
        return f"{self._matches.rank(self._offset):,} of {count:,}{'+' if count >= MOST else ''}"

    def _row(self, direction: int) -> str:
        table = self.target
        if not isinstance(table, RowTable) or not self.needle:
            return ""
        row = table.find(self.needle, direction)
        if row is None:
            return "not found"
        table.move_to(row)
        return ""
