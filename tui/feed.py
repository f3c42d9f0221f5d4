"""Brings a growing capture from the thread that waits for it to the screen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from textual.message import Message

from ..inspector.capture.model import PHASES, Capture
from ..inspector.capture.spawn import CaptureHandle
from ..inspector.capture.warm import WARMTH
from ..inspector.ir.program import Program

STOP_TIMEOUT_S = 5.0
"""Seconds to wait, at the end, for a capturing process that was told to stop."""


class Feed:
    """The latest of the captures that arrived since the screen last looked.

    A complete one is not replaced by one that failed.

    What is read of one is kept for those that grow out of it. `runs` counts how often a capture was begun.
    """

    class Arrived(Message):
        """There is something to be taken."""

    @dataclass
    class Rerunning(Message):
        """Progress of a capture that will replace the shown one."""

        phase: str

    @dataclass
    class Failed(Message):
        """A capture that was to replace the shown one, and failed."""

        capture: Capture

    def __init__(self, captures: Iterable[Capture], cancel: Callable[[], None]) -> None:
        self._captures = captures
        self._cancel = cancel
        self._latest = Program(Capture())
        self._announced = False
        self._over = False
        self.runs = 1
        self._requested = 0
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
        self._announced = False
        return self._latest

    def rerun(self, begin: Callable[[], CaptureHandle]) -> None:
        """Capture again. What is shown stays until the new capture has ended, whichever way.

        Of several requests that wait for the capture before to end, only the last is carried out.
        """
        self._cancel()
        self._requested += 1
        waiting = (begin, self._thread, self._requested)
        self._thread = threading.Thread(target=self._run_again, args=waiting, name="shardscope-feed", daemon=True)
        self._thread.start()

    def stop(self) -> Capture:
        """End the capture if it is still going on, and give what there is of it."""
        self._over = True
        self._cancel()
        if self._thread.ident is not None:
            self._thread.join(STOP_TIMEOUT_S)
        return self._latest.capture

    def _run(self) -> None:
        for capture in self._captures:
            self._latest = self._latest.grown(capture)
            self._announce()
        WARMTH.prepare()

    def _run_again(self, begin: Callable[[], CaptureHandle], before: threading.Thread, request: int) -> None:
        before.join()
        if request != self._requested:
            return
        handle = begin()
        self._cancel = handle.cancellation.cancel
        if self._over or request != self._requested:
            self._cancel()
        last = None
        for last in handle.captures:
            if last.progress is not None:
                self._post(self.Rerunning(PHASES[last.progress.phase]))
        if last is None or last.progress is not None:  # it was cancelled
            return
        if last.failure is not None and self._latest.capture.complete:
            self._post(self.Failed(last))
        else:
            self._latest = Program(last)
            self.runs += 1
            self._announce()

    def _announce(self) -> None:
        if not self._announced:
            self._announced = True
            self._post(self.Arrived())
