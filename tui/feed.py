"""Brings a growing capture from the thread that waits for it to the screen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from textual.message import Message

from ..inspector.capture.model import Capture
from ..inspector.ir.program import Program

STOP_TIMEOUT_S = 5.0
"""Seconds to wait, at the end, for a capturing process that was told to stop."""


class Feed:
    """Of the captures that have come since the screen last looked it gets only the latest.

    What is read of one is kept for those that grow out of it.
    """

    class Arrived(Message):
        """There is something to be taken."""

    def __init__(self, captures: Iterable[Capture], cancel: Callable[[], None]) -> None:
        self._captures = captures
        self._cancel = cancel
        self._latest = Program(Capture())
        self._announced = False
        self._post: Callable[[Message], object] = lambda message: None
        self._thread = threading.Thread(target=self._run, name="shardscope-feed", daemon=True)

    def start(self, post: Callable[[Message], object]) -> None:
        """Begin, if it has not begun; `post` must be callable from any thread, and is told what has come already."""
        self._post = post
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._announced = True
            post(self.Arrived())

    @property
    def latest(self) -> Program:
        """The latest program, whether it was taken or not."""
        return self._latest

    def take(self) -> Program:
        """The latest program."""
        self._announced = False
        return self._latest

    def stop(self) -> Capture:
        """End the capture if it is still going on, and give what there is of it."""
        self._cancel()
        if self._thread.ident is not None:
            self._thread.join(STOP_TIMEOUT_S)
        return self._latest.capture

    def _run(self) -> None:
        for capture in self._captures:
            self._latest = self._latest.grown(capture)
            if not self._announced:
                self._announced = True
                self._post(self.Arrived())
