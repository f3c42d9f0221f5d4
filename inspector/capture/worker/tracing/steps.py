"""The end of a script that shardscope stops: after so many calls of a program, or before its first."""

from __future__ import annotations

import _thread
import os
import threading

EXIT_TIMEOUT_S = 20.0
"""Seconds in which a script that was ended by us has to come to its end; threads of its own may never do."""


class Steps:
    """Counts calls up to a limit; None for no limit. `stopped` says why the script was ended, if it was."""

    def __init__(self, limit: int | None) -> None:
        self.stopped = ""
        self._limit = limit
        self._count = 0

    def add(self) -> None:
        """Count a call, and end the script after the last."""
        self._count += 1
        if self._limit is not None and self._count >= self._limit:
            self.stop(f"{self._count} calls were made")

    def stop(self, why: str) -> None:
        """End the script as `sys.exit` would, from whatever thread."""
        if not self.stopped:
            self.stopped = why
            timer = threading.Timer(EXIT_TIMEOUT_S, os._exit, (0,))
            timer.daemon = True
            timer.start()
        if threading.current_thread() is not threading.main_thread():
            _thread.interrupt_main()
        raise SystemExit(0)
