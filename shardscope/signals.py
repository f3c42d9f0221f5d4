"""Signals that end a command: an exception in the main thread unwinds it, so that nothing is left behind."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

SIGNALLED = 128
"""Offset that shells add to the number of a signal that ended a command."""

AGAIN_S = 1.0
"""Seconds after which it is raised once more, if what was interrupted has swallowed it."""

LONGEST_S = 30.0
"""Seconds after which this process ends, whatever it still waits for."""


class Stopped(SystemExit):
    """A signal ends this process; asyncio keeps to itself what is no SystemExit."""

    def __init__(self, number: int) -> None:
        self.status = SIGNALLED + number
        super().__init__(self.status)


def _leave_terminal() -> None:
    """Let what is still written to a terminal that was closed go nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):
            os.dup2(nowhere, descriptor)
    os.close(nowhere)


def stopped_by(handled: BaseException | None) -> Stopped | None:
    """Return the signal behind an exception: classes wrap what is raised while they are made."""
    while handled is not None and not isinstance(handled, Stopped):
        handled = handled.__cause__ or handled.__context__
    return handled


@contextmanager
def stopping() -> Iterator[None]:
    """Raise Stopped in the main thread at the first such signal; those after it wait until all is cleaned up.

    It leaves the block also where something within has swallowed it, as extension modules do that ask an object for an
    attribute: what comes after that is not to be relied on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    came: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(number)
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        signal.signal(signal.SIGCONT, signal.SIG_DFL)  # comes with SIGHUP, and the screen would begin again
        if number == signal.SIGHUP:
            _leave_terminal()
        last = threading.Timer(LONGEST_S, os._exit, (SIGNALLED + number,))
        last.daemon = True
        last.start()
        timers.append(last)

        def insist(alarm: int, frame: FrameType | None) -> None:
            if stopped_by(sys.exception()) is None:  # it was raised in a destructor, for example, and went nowhere
                raise Stopped(number)

        signal.signal(signal.SIGALRM, insist)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
        raise Stopped(number)

    # Whoever starts a command with nohup has it ignore the end of the terminal.
    before = {each: signal.getsignal(each) for each in ENDING if signal.getsignal(each) is not signal.SIG_IGN}
    timers: list[threading.Timer] = []
    shown = sys.unraisablehook
    sys.unraisablehook = lambda failed: None if stopped_by(failed.exc_value) else shown(failed)
    try:
        for each in before:
            signal.signal(each, stop)
        yield
        if came:
            raise Stopped(came[0])
    except BaseException as error:
        if came and stopped_by(error) is None:
            raise Stopped(came[0]) from error
        raise
    finally:
        sys.unraisablehook = shown
        signal.setitimer(signal.ITIMER_REAL, 0)
        for timer in timers:
            timer.cancel()
        for each, handler in before.items():
            signal.signal(each, handler)
