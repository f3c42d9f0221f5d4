"""Reasons why a module has no value."""

from __future__ import annotations

from collections.abc import Sequence


class NotEvaluatedError(Exception):
    """An instruction without a known meaning; `place` is its name and line, once they are known."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


class DeadlockError(NotEvaluatedError):
    """A collective in which only a part of a group takes part: `devices` are that part."""

    def __init__(self, reason: str, place: str = "", devices: Sequence[int] = ()) -> None:
        super().__init__(reason, place)
        self.devices = devices


class OutOfTimeError(NotEvaluatedError):
    """The seconds that were allowed are over."""
