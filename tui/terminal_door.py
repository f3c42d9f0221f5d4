"""The door between the screen and the terminal: what the terminal gets is drawn by Textual, or it is plain text.

Texts from outside are made printable where they are painted (`painted.data`). What got past that is stopped here, piece
by piece before it is drawn, and once more in what the driver writes, where only sequences that Textual has remain.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, TextIO

from rich.segment import Segment
from textual.color import Color
from textual.driver import Driver
from textual.filter import LineFilter

from ..inspector.render.printable import UNSAFE
from ..inspector.render.safe_console import safe_segment

_SEQUENCES = re.compile(
    r"(\x1b(?:"
    r"\[[?<=>]?[0-9;:]*\$?[A-Za-z]"  # CSI: colours, the cursor, modes of the terminal and questions about them
    r"|\]52;c;[A-Za-z0-9+/=]*\x07|\]22;[a-z-]*\x07"  # what the user copies, the shape of the pointer
    r")|[\r\x07])"
    rf"|{UNSAFE}"
)


class PrintableFilter(LineFilter):
    """Makes each piece of a line safe to show."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [segment if segment.control else safe_segment(segment) for segment in segments]


class _Lasting:
    """A terminal that may be closed: the thread that writes to it must not end, as others wait for it."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> None:
        with _ending_when_closed():
            self._file.write(text)

    def flush(self) -> None:
        with _ending_when_closed():
            self._file.flush()


@contextmanager
def _ending_when_closed() -> Iterator[None]:
    """End this process as its terminal's end does, also where nobody sends it the signal."""
    try:
        yield
    except OSError:
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGTERM if ignored else signal.SIGHUP)


def _end_after_hangup(fileno: int) -> None:
    """End this process when its terminal is gone: to read it gives nothing then, at once and for ever."""
    poll = select.poll()
    poll.register(fileno, 0)
    if any(mask & select.POLLHUP for _, mask in poll.poll()):
        with _ending_when_closed():
            raise OSError("the terminal is closed")


def guarded(driver: type[Driver]) -> type[Driver]:
    """Return a driver that writes no sequences but those of Textual."""

    class GuardedDriver(driver):  # type: ignore[misc, valid-type]
        """A driver with a guarded terminal; if the terminal is closed it goes on, so that everything ends in order."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            if (file := getattr(self, "_file", None)) is not None:
                self._file = _Lasting(file)

        def run_input_thread(self) -> None:
            if sys.platform == "linux":
                Thread(target=_end_after_hangup, args=(self.fileno,), daemon=True).start()
            with _ending_when_closed():
                super().run_input_thread()

        def write(self, data: str) -> None:
            super().write(_SEQUENCES.sub(lambda match: match[1] or "�", data))

    return GuardedDriver


def end_input(driver: Driver) -> None:
    """End the thread that reads the keys, where an exception has kept the driver from it: Python waits for its end."""
    if (over := getattr(driver, "exit_event", None)) is not None:
        over.set()
