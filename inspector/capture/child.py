"""A process that this one has started: how it is ended, with its group, and how one waits for its end."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from .endings import Ending

GRACE_S = 5.0
"""Seconds that a process has to end after a signal that asks it to."""

Fork = Callable[[Any, str | None, Mapping[str, str] | None, Mapping[str, Any], Sequence[int]], int | None]
"""Return the id of a process that is forked for a command, as `Warmth.fork` does; None to start it as usual."""


class Child(subprocess.Popen[bytes]):
    """A process, with its group where it has a session of its own. It `is_warm` if `fork` has made it.

    Any thread may end it. The thread that starts it must live as long as it does: on Linux it is that thread's end, not
    this process's, at which the kernel kills it (prctl(2), PR_SET_PDEATHSIG).

    Raises:
        OSError, ValueError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        fork: Fork | None,
        start_new_session: bool = True,
        **options: Any,
    ) -> None:
        self.is_warm = self.is_killed = self._has_group = False
        self._fork = fork
        super().__init__(command, env=environment, start_new_session=start_new_session, **options)
        self._has_group = start_new_session

    def kill(self) -> None:
        """End it, and what is left of its group."""
        self.is_killed = True
        if not self._has_group:
            super().kill()
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # macOS gives the latter for a group that has ended
            self._has_group = False

    def terminate(self, number: signal.Signals = signal.SIGTERM, grace_s: float = GRACE_S) -> None:
        """Send a signal, and kill what has not ended when the seconds of grace are over."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
        timer = threading.Timer(grace_s, self.kill)
        timer.daemon = True
        timer.start()

    def end_group(self) -> None:
        """End what it has started, as it has ended itself."""
        self.kill()
        self._has_group = False

    def ended(self, data: bytes = b"", timeout: float | None = None) -> Ending:
        """Write to its standard input, and wait for its end.

        Raises:
            subprocess.TimeoutExpired: it took longer, and is killed.
        """
        with self:
            try:
                stdout, stderr = self.communicate(data, timeout)
            finally:
                self.end_group()
        return Ending(self.returncode, None, stdout or b"", stderr=stderr or b"")

    def _execute_child(
        self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any, env: Any,
        startupinfo: Any, creationflags: Any, shell: Any, p2cread: int, p2cwrite: int, c2pread: int, c2pwrite: int,
        errread: int, errwrite: int, *rest: Any,
    ) -> None:  # fmt: skip
        """As in Python 3.11 to 3.14."""
        ends = (p2cread, c2pwrite, errwrite)
        pid = None
        if self._fork is not None and -1 not in ends:
            request = {
                "args": list(args),
                "env": dict(env),
                "cwd": os.path.abspath(cwd or "."),
                "pass_fds": list(pass_fds),
                "new_session": bool(rest[-2]),
            }
            pid = self._fork(args, cwd, env, request, [*ends, *pass_fds])
        if pid is None:
            own = (args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell)
            pipes = (p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)
            super()._execute_child(*own, *pipes, *rest)  # type: ignore[misc]
            return
        self.pid = pid
        self.is_warm = True
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]
