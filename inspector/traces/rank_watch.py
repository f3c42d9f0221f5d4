"""Divergence of processes that still run: they may wait for each other for ever."""

from __future__ import annotations

import time
from pathlib import Path

from .ranks import first_other_call
from .read import RecordedProcess, Session

GRACE_S = 10.0
"""Seconds that processes have, after they have diverged, to show what else they do."""


class RankWatch:
    """Reads what the processes record as they run. With `at_rest`, those that do something have all the time."""

    def __init__(self, folder: Path, *, at_rest: bool = False) -> None:
        self._session = Session(folder)
        self._at_rest = at_rest
        self._since: float | None = None

    @property
    def _ranks(self) -> list[RecordedProcess]:
        return [each for each in self._session.processes if each.process and each.process.started.rank is not None]

    def why_to_end(self) -> str:
        """Return a reason to end the processes; empty while there is none."""
        if self._session.update() and (self._since is None or self._at_rest):
            self._since = time.monotonic() if self._have_diverged() else None
        if self._since is None or time.monotonic() - self._since < GRACE_S:
            return ""
        return "they run different programs"

    def have_ended(self, processes: int) -> bool:
        """Return whether so many processes have come to the end of their scripts."""
        return [rank.finished().has_ended for rank in self._ranks] == [True] * processes

    def _have_diverged(self) -> bool:
        ranks = dict(enumerate(self._ranks))
        known = {
            number: {each.number: each.fingerprint for each in rank.programs.values()} for number, rank in ranks.items()
        }
        calls = {number: [known[number].get(each.number, "") for each in rank.called] for number, rank in ranks.items()}
        ended = {number: rank.finished().has_ended for number, rank in ranks.items()}
        return first_other_call(calls, ended) is not None
