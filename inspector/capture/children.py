"""Processes that end with this one, and the reasons to end them: one failed, or all wait for each other."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from . import guarding
from .child import Child, Fork
from .endings import Ending
from .guarding import CLOSED, DISMISSED, MARK

POLL_S = 0.2
FAILED_GRACE_S = 10.0
"""Seconds that the other processes have to end after one has failed: they would wait for it."""

STALLED_S = 60.0
"""Seconds without a noteworthy use of the processor in any process, after which they wait for each other for ever."""

CHECK_S = 5.0

STALLED_SHARE = 0.02
"""Share of a core that waiting processes use."""

STARVED_SHARE = 0.5
"""Share of the time in which a thread that has something to do runs, or waits for a processor."""

Reason = Callable[[], str | None]
"""Return why processes are to end, in words that may be empty; None while they may go on."""


class Children:
    """Processes that end with this one. All of shardscope are among some, but for the user's editor.

    A guardian, a process beside them, ends them with their groups and descendants, and where Linux shows the
    environment of a process, all that have inherited theirs. It does so when they are closed, when a block is left by
    an exception or after `kill`, and when this process ends in whatever way: it reads a pipe that ends then. In the
    latter case it also removes the temporary folders that are left.

    Raises:
        OSError: there can be no guardian.
    """

    def __init__(self) -> None:
        self._mark = secrets.token_hex(8)
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", guarding.__file__, str(os.getpid()), tempfile.gettempdir(), self._mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if name != MARK},
            bufsize=0,
        )
        self._children: list[Child] = []
        self._lock = threading.Lock()
        self._killed = threading.Event()
        self._failed_at: float | None = None

    def begin(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        fork: Fork | None = None,
        **options: Any,
    ) -> Child:
        """Start one in an environment, this process's where none is given, with options of `subprocess.Popen`.

        Raises:
            OSError, ValueError: it cannot be started, or the others have been killed.
        """
        if self._killed.is_set():
            raise ChildProcessError("killed before its start")
        given = os.environ if environment is None else environment
        child = Child(command, {**given, MARK: f"{given.get(MARK, '')}:{self._mark}"}, fork, **options)
        self._tell(b"%d\n" % child.pid)
        with self._lock:
            self._children.append(child)
            if self._killed.is_set():
                child.kill()
        return child

    def kill(self) -> None:
        """Kill all, and begin no others. May be called from any thread."""
        with self._lock:
            self._killed.set()
            for child in self._children:
                child.kill()

    def wait(self, *reasons: Reason) -> str:
        """Wait until all have ended, or there is a reason to end them, which it gives."""
        for child in self._children:
            while child.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(POLL_S if reasons else None)
                for reason in reasons:
                    if (why := reason()) is not None:
                        return why
        return ""

    def failed(self) -> str | None:
        """The reason that one failed a while ago."""
        failures = ((rank, status) for rank, child in enumerate(self._children) if (status := child.poll()))
        if (failure := next(failures, None)) is None:
            return None
        rank, status = failure
        self._failed_at = self._failed_at or time.monotonic()
        if time.monotonic() - self._failed_at <= FAILED_GRACE_S:
            return None
        how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
        return f"process {rank} {how}, for which the others waited"

    def stalled(self, have_ended: Callable[[], bool]) -> Reason:
        """The reason that none does anything; it is an empty one once their scripts `have_ended`."""
        busy_at = checked_at = time.monotonic()
        used, ready = 0.0, dict[Path, float]()

        def reason() -> str | None:
            nonlocal busy_at, checked_at, used, ready
            now = time.monotonic()
            if now - checked_at <= CHECK_S:
                return None
            pids = [child.pid for child in self._children]
            seconds, before, ready = processor_seconds(pids), ready, ready_seconds(pids)
            longest = max((spent - before.get(thread, 0.0) for thread, spent in ready.items()), default=0.0)
            is_idle = seconds is not None and 0 <= seconds - used < STALLED_SHARE * (now - checked_at)
            if not is_idle or longest > STARVED_SHARE * (now - checked_at):
                busy_at = now
            checked_at, used = now, seconds or 0.0
            if now - busy_at <= STALLED_S:
                return None
            return "" if have_ended() else f"no process did anything for {STALLED_S:.0f} s: they waited for each other"

        return reason

    def end(self, *, is_gentle: bool = False) -> tuple[int | None, ...]:
        """End those that still run, which JAX would not let a SIGTERM do; the exit statuses of the others.

        What any of them has started ends, too, unless there is one, the user's command, and it has ended by itself.
        """
        statuses = tuple(child.poll() for child in self._children)
        if len(statuses) == 1 and None not in statuses:
            self.dismiss()
            return statuses
        for child in self._children if is_gentle else ():
            child.terminate()
            child.wait()
        self.close()
        return statuses

    def dismiss(self) -> None:
        """Let go what they have started: they have ended."""
        self._end(DISMISSED)

    def close(self) -> None:
        """End all, and what they have started, and wait until that is gone."""
        self._end(CLOSED)
        self.kill()
        for child in self._children:
            child.wait()
            if child.stdin is not None:
                with suppress(OSError):  # of what it never read
                    child.stdin.close()

    def _end(self, word: bytes) -> None:
        self._tell(word)
        assert self._guardian.stdin is not None
        self._guardian.stdin.close()
        self._guardian.wait()

    def _tell(self, line: bytes) -> None:
        assert self._guardian.stdin is not None
        with suppress(OSError):  # somebody has killed it
            self._guardian.stdin.write(line)

    def __enter__(self) -> Children:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close() if kind is not None or self._killed.is_set() else self.dismiss()


def run(
    command: Sequence[str],
    data: bytes = b"",
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    children: Children | None = None,
) -> Ending:
    """Run a command, one of the `children`, with bytes on its standard input, to its end or that of this process.

    Raises:
        OSError, ValueError: it cannot be started. SubprocessError: it takes longer.
    """
    pipe = subprocess.PIPE
    with Children() if children is None else nullcontext(children) as among:
        return among.begin(command, environment, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder).ended(data, timeout)


PARENT, USER, SYSTEM = 1, 11, 12
"""Fields of /proc/PID/stat after the name of the command."""


def processor_seconds(pids: Iterable[int]) -> float | None:
    """Seconds of living processes and their descendants; None where the system does not say."""
    stats = _stats()
    if not stats:
        return None
    ticks = (int(stats[pid][USER]) + int(stats[pid][SYSTEM]) for pid in _descendants(pids, stats))
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def ready_seconds(pids: Iterable[int]) -> dict[Path, float]:
    """Seconds in which each of their threads ran or could have run: on a busy machine they wait for a processor."""
    found = {}
    for pid in _descendants(pids, _stats()):
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(OSError, ValueError):
                ran, waited, *_ = path.read_text().split()
                found[path] = (int(ran) + int(waited)) / 1e9
    return found


def _stats() -> Mapping[int, list[str]]:
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            found[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
    return found


def _descendants(pids: Iterable[int], stats: Mapping[int, list[str]]) -> Iterator[int]:
    wanted = set(pids)
    for each in stats:
        pid = each
        while pid not in wanted and pid in stats:
            pid = int(stats[pid][PARENT])
        if pid in wanted:
            yield each
