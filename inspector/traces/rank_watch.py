"""Divergence of processes that still run: they may wait for each other for ever."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from ..capture.protocol.trace import Called, CompiledProgram, ProcessStarted, ScriptEnded
from .event_file import EventFiles
from .ranks import first_other_call

GRACE_S = 10.0
"""Seconds that processes have, after they have diverged, to show what else they do."""


@dataclass
class _Rank:
    fingerprints: dict[int, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    has_ended: bool = False


class RankWatch:
    """Reads what the processes record as they run. With `at_rest`, those that do something have all the time."""

    def __init__(self, folder: Path, *, at_rest: bool = False) -> None:
        self._files = EventFiles(folder)
        self._ranks: dict[Path, _Rank] = {}
        self._at_rest = at_rest
        self._since: float | None = None

    def why_to_end(self) -> str:
        """Return a reason to end the processes; empty while there is none."""
        is_new = False
        for folder, event in self._files.read():
            is_new = True
            if isinstance(event, ProcessStarted) and event.rank is not None:
                self._ranks[folder] = _Rank()
            if (rank := self._ranks.get(folder)) is None:
                continue
            match event:
                case CompiledProgram():
                    rank.fingerprints[event.number] = event.fingerprint
                case Called():
                    rank.calls.append(rank.fingerprints.get(event.number, ""))
                case ScriptEnded():
                    rank.has_ended = True
        if is_new and (self._since is None or self._at_rest):
            self._since = time.monotonic() if self._have_diverged() else None
        if self._since is None or time.monotonic() - self._since < GRACE_S:
            return ""
        return "they run different programs"

    def have_ended(self, processes: int) -> bool:
        """Return whether so many processes have come to the end of their scripts."""
        return [rank.has_ended for rank in self._ranks.values()] == [True] * processes

    def _have_diverged(self) -> bool:
        sequences = {number: rank.calls for number, rank in enumerate(self._ranks.values())}
        ended = {number: rank.has_ended for number, rank in enumerate(self._ranks.values())}
        return first_other_call(sequences, ended) is not None
