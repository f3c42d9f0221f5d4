"""Signals that end a command: they end it as Ctrl-C does, so that nothing is left behind."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """This process was told to end, by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _leave_terminal() -> None:
    """Let what is still written to a terminal that was closed go nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):
            os.dup2(nowhere, descriptor)
    os.close(nowhere)


@contextmanager
def stopping() -> Iterator[None]:
    """Raise Stopped in the main thread at the first such signal; those after it wait until all is cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        signal.signal(signal.SIGCONT, signal.SIG_DFL)  # comes with SIGHUP, and the screen would begin again
        if number == signal.SIGHUP:
            _leave_terminal()
        raise Stopped(number)

    # Whoever starts a command with nohup has it ignore the end of the terminal.
    before = {each: signal.getsignal(each) for each in ENDING if signal.getsignal(each) is not signal.SIG_IGN}
    try:
        for each in before:
            signal.signal(each, stop)
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
