"""Visited places, as in an editor: back, and forward again."""

from __future__ import annotations

from ..parsers.record import Record
from .entry_details import Selected

MAX_JUMPS = 200


class Stop(Record, frozen=True):
    """A view of the screen: the tab, the stage, what was selected, and the id of what had the focus."""

    tab: str
    stage: str
    selected: Selected | None
    focus: str | None


class Jumps:
    """The stops, and at which of them one is."""

    def __init__(self) -> None:
        self._back: list[Stop] = []
        self._forward: list[Stop] = []

    def leave(self, here: Stop) -> None:
        if not self._back or self._back[-1] != here:
            self._back = [*self._back[-MAX_JUMPS:], here]
        self._forward = []

    def back(self, here: Stop) -> Stop | None:
        return self._move(self._back, self._forward, here)

    def forward(self, here: Stop) -> Stop | None:
        return self._move(self._forward, self._back, here)

    @staticmethod
    def _move(source: list[Stop], target: list[Stop], here: Stop) -> Stop | None:
        if not source:
            return None
        target.append(here)
        return source.pop()
