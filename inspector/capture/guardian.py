"""Processes that end with this one: another one beside it ends them, in case this one is killed."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from .guarding import CLOSED, DISMISSED, MARK

PROGRAM = str(Path(__file__).with_name("guarding.py"))


def run(
    command: Sequence[str],
    data: bytes = b"",
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    begun: Callable[[subprocess.Popen[bytes]], None] = lambda process: None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command, with bytes on its standard input, to its end or that of this process; `begun` gets the process.

    Raises:
        OSError, ValueError: it cannot be started. SubprocessError: it takes longer.
    """
    pipe = subprocess.PIPE
    with Guardian() as guardian:
        process = guardian.start(command, environment, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder)
        with process:
            begun(process)
            try:
                stdout, stderr = process.communicate(data, timeout=timeout)
            except BaseException:
                process.kill()
                raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


class Guardian:
    """Ends the processes that it started, with their groups and descendants, and where Linux shows the environment of a
    process, all that have inherited theirs.

    It does so when it is asked to, when a block is left by an exception, and when this process ends in whatever way: it
    reads a pipe that ends then. In the latter case it also removes the temporary folders that are left. All processes
    of shardscope are started by it, but for the user's editor.

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

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        kind: type[subprocess.Popen[bytes]] = subprocess.Popen,
        **options: Any,
    ) -> subprocess.Popen[bytes]:
        """Start a process, in the environment of this one where none is given. The marks of other guardians stay in it.

        Raises:
            OSError, ValueError: it cannot be started.
        """
        given = os.environ if environment is None else environment
        process = kind(command, env={**given, MARK: f"{given.get(MARK, '')}:{self._mark}"}, **options)
        self._tell(b"%d\n" % process.pid)
        return process

    def dismiss(self) -> None:
        """Let it go: what it watched has ended."""
        self._end(DISMISSED)

    def close(self) -> None:
        """Have it end what still runs, and wait until that is gone."""
        self._end(CLOSED)

    def _end(self, word: bytes) -> None:
        self._tell(word)
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
