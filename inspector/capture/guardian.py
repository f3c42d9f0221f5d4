"""A process beside this one that ends what this one has started, in case this one is killed."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from .guarding import DISMISSED, MARK

PROGRAM = str(Path(__file__).with_name("guarding.py"))


def run_guarded(command: Sequence[str], data: bytes, timeout: float) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, with bytes on its standard input; a guardian ends it if this process is killed.

    Raises:
        OSError: it cannot be started. SubprocessError: it takes longer.
    """
    with Guardian() as guardian:
        environment = guardian.environment(os.environ)
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as process:
            guardian.watch(process.pid)
            try:
                stdout, stderr = process.communicate(data, timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


class Guardian:
    """Ends the processes that `watch` names, with their groups and descendants, and where Linux shows the environment
    of a process, all that have inherited `environment`.

    It does so when it is asked to, when a block is left by an exception, and when this process ends in whatever way: it
    reads a pipe that ends then. In the latter case it also removes the temporary folders that are left.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self) -> None:
        self._mark = secrets.token_hex(8)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", PROGRAM, str(os.getpid()), tempfile.gettempdir(), self._mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if name != MARK},
            bufsize=0,
        )

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment for what it shall end; the marks of others that guard this process stay in it."""
        return {**given, MARK: f"{given.get(MARK, '')}:{self._mark}"}

    def watch(self, pid: int) -> None:
        """Have it end this process, too."""
        self._tell(b"%d\n" % pid)

    def dismiss(self) -> None:
        """Let it go: what it watched has ended."""
        self._tell(DISMISSED)
        self.close()

    def close(self) -> None:
        """Have it end what still runs, and wait until that is gone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # somebody has killed it
            self._process.stdin.write(line)

    def __enter__(self) -> Guardian:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.dismiss() if kind is None else self.close()
