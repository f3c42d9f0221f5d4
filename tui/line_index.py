"""Where the lines of a text begin, found as far as one has looked."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import cached_property


class LineIndex:
    """The lines of a text, counted from 0. A text of hundreds of megabytes is never split or decoded as a whole."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._starts = array("Q", [0])

    @cached_property
    def count(self) -> int:
        """How many lines there are; a newline at the end begins no other."""
        return self._data.count(b"\n") + (not self._data.endswith(b"\n"))

    def span(self, line: int) -> tuple[int, int]:
        """First byte of a line and the one after its last, the newline left out; an empty span behind the end."""
        while len(self._starts) <= line + 1:
            newline = self._data.find(b"\n", self._starts[-1])
            if newline < 0:
                start = self._starts[line] if line < len(self._starts) else len(self._data)
                return start, len(self._data)
            self._starts.append(newline + 1)
        return self._starts[line], self._starts[line + 1] - 1

    def line_at(self, offset: int) -> int:
        """The line in which a byte lies; the last one for an offset behind the end."""
        starts, data = self._starts, self._data
        while starts[-1] <= offset and (newline := data.find(b"\n", starts[-1])) >= 0:
            starts.append(newline + 1)
        return min(bisect_right(starts, offset) - 1, self.count - 1)
