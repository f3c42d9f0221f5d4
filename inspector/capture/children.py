"""Processes that run a command together, and the reasons to end them: one failed, or all wait for each other."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from .guardian import Guardian
from .model import CaptureError

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

GRACE_S = 5.0
"""Seconds that a command has to end after a SIGTERM, which ended this process."""

Reason = Callable[[], str | None]
"""Return why processes are to end, in words that may be empty; None while they may go on."""


class Children:
    """Processes of one command. One that is alone is a command of the user's: it may end in its own way."""

    def __init__(self) -> None:
        self._guardian = Guardian()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._failed_at: float | None = None

    def begin(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        stdin: int | None = None,
        stdout: IO[bytes] | int | None = None,
        stderr: int | None = None,
        *,
        has_session: bool = False,
    ) -> None:
        """Start one, with our own streams where no others are given, and in a session of its own if it `has_session`.

        Raises:
            CaptureError: it cannot be run.
        """
        streams: dict[str, Any] = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        try:
            process = self._guardian.start(command, environment, start_new_session=has_session, **streams)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CaptureError(f"cannot run {command[0]}: {reason}") from error
        self._processes.append(process)

    def wait(self, *reasons: Reason) -> str:
        """Wait until all have ended, or there is a reason to end them, which it gives."""
        for process in self._processes:
            while process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S if reasons else None)
                for reason in reasons:
                    if (why := reason()) is not None:
                        return why
        return ""

    def failed(self) -> str | None:
        """The reason that one failed a while ago."""
        failures = ((rank, status) for rank, process in enumerate(self._processes) if (status := process.poll()))
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
            pids = [process.pid for process in self._processes]
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

        What any of them has started ends, too, unless there is one, and it has ended by itself.
        """
        statuses = tuple(process.poll() for process in self._processes)
        if len(statuses) == 1 and None not in statuses:
            self._guardian.dismiss()
            return statuses
        for process in self._processes if is_gentle else ():
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        self._guardian.close()
        for process in self._processes:
            with suppress(OSError):
                process.kill()
            process.wait()
        return statuses


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
