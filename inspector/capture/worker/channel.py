"""The one way out of the capturing process: events, written to a pipe as things become known."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from os import _exit  # a script may have its own
from pathlib import Path
from typing import NoReturn

from ..protocol import wire
from ..protocol.events import Event, Level, Message, Phase, Progress, frame_of

PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Channel:
    """Hands events on to `send`; `phase` is what was last said to be going on."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self.phase: Phase = "start"
        self.send = send
        self._started = time.monotonic()

    def enter(self, phase: Phase) -> None:
        """Say what is being done from now on."""
        self.phase = phase
        self.send(Progress(phase, self.now()))

    def tell(self, level: Level, text: str, location: str | None = None) -> None:
        """Send a message about what is being done."""
        self.send(Message(level, text, self.phase, location))

    def now(self) -> float:
        """Seconds since the start: the `since` of an event."""
        return round(time.monotonic() - self._started, 6)


def error_text(error: BaseException) -> str:
    """The class and first line of an exception; the place of one that says nothing, such as an assertion of JAX."""
    name, said = type(error).__name__, str(error).partition("\n")[0]
    frames = traceback.extract_tb(error.__traceback__)
    at = f" at {'/'.join(Path(frames[-1].filename).parts[-3:])}:{frames[-1].lineno}" if frames else ""
    return f"{name}: {said}" if said else f"{name}{at}"


def leave() -> NoReturn:
    """End the process: threads of the script may never end, and its exit handlers are not part of what is captured."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the script may have closed it, or put anything in its place
            stream.flush()
    _exit(0)


class Pipe:
    """Writes events to a file descriptor; only the process that made it does, whatever the script forks or executes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._owner = self._forking = os.getpid()
        self._lock = threading.Lock()
        os.set_inheritable(descriptor, False)
        os.register_at_fork(before=self._before_fork, after_in_child=self._leave)

    def write(self, event: Event) -> None:
        """Write one event. A fork of this process that comes here has nothing to tell, and ends."""
        if os.getpid() != self._owner:
            _exit(0)
        data = memoryview(wire.encode(frame_of(event)))
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError:
                _exit(1)  # Nobody listens any more, or the script closed all files: there is no use in going on.

    def _before_fork(self) -> None:
        self._forking = os.getpid()

    def _leave(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        _ask_for_death(self._forking)


def die_with_parent() -> None:
    """Have Linux kill this process at once when the one that started it ends; a guardian does it a moment later."""
    _ask_for_death(os.getppid())


def _ask_for_death(parent: int) -> None:
    """Linux sends the signal by itself, but not for a parent that ended before it was asked."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            _exit(1)
