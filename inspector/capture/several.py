"""Runs a script as several processes of one machine, which stand for those of a cluster.

The first has our standard input and output; what the others print is kept in the folder of the trace.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from ...parsers.record import Record
from ..targets.target import parse_target
from .environment import DEFAULT_DEVICES
from .guardian import Guardian
from .model import CaptureError
from .protocol.trace import TraceOptions
from .tracing import check_recorded, environment_on_target

MAX_PROCESSES = 256

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

RANK, PROCESSES = "{rank}", "{processes}"
"""In arguments of the script, these are replaced."""


class FinishedProcesses(Record, frozen=True):
    """The exit statuses by rank, None for a process that was ended by us; `why` it was; seconds of all."""

    statuses: tuple[int | None, ...]
    why: str
    seconds: float

    @property
    def status(self) -> int:
        """The first status that is not 0."""
        return next((status for status in self.statuses if status), 0)


def devices_of_each(processes: int, devices: int | None, target: str) -> int:
    """Return the number of devices of each process.

    Raises:
        CaptureError: they cannot be divided among the processes.
    """
    if not 1 < processes <= MAX_PROCESSES:
        raise CaptureError(f"--processes takes a number from 2 to {MAX_PROCESSES}")
    total = devices or parse_target(target).devices or max(DEFAULT_DEVICES // processes, 1) * processes
    if total % processes:
        raise CaptureError(f"{total} devices cannot be divided among {processes} processes")
    return total // processes


def run_processes(
    command: Sequence[str],
    folder: Path,
    options: TraceOptions,
    devices: int,
    stdout: IO[bytes] | int | None = None,
    why_to_end: Callable[[], str] = str,
    timeout: float | None = None,
    have_ended: Callable[[], bool] = bool,
) -> FinishedProcesses:
    """Run a command as `options.processes` processes with so many fake devices each, to their end.

    They are ended when one has failed, when `why_to_end` gives a reason, when all wait, or after `timeout` seconds.
    JAX's processes sometimes hang as Python ends: that is no reason once their scripts `have_ended`.

    Raises:
        CaptureError: the command cannot be run.
    """
    options = replace(options, coordinator=f"127.0.0.1:{_free_port()}")
    started = time.monotonic()
    before = signal.getsignal(signal.SIGINT)
    running = _Running(Guardian())
    try:
        for rank in range(options.processes):
            own = replace(options, rank=rank)
            environment = {**environment_on_target(folder, own, devices), **_launcher_variables(own)}
            log = output_file(folder, rank) if rank else None
            running.begin(_filled_in(command, own), environment, stdout, log)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # not before: Ctrl-C is theirs
        why = running.wait(why_to_end, None if timeout is None else started + timeout, have_ended)
    finally:
        ended = running.end()
        signal.signal(signal.SIGINT, before)
    check_recorded(folder)
    return FinishedProcesses(ended, why, time.monotonic() - started)


OUTPUT_FILE = "output-{}.txt"


def output_file(folder: Path, rank: int) -> Path:
    """The file of standard output of a process other than the first."""
    return folder / OUTPUT_FILE.format(rank)


def is_output_file(name: str) -> bool:
    """Return whether a file has such a name."""
    return fnmatchcase(name, OUTPUT_FILE.format("*"))


@dataclass
class _Running:
    guardian: Guardian
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def begin(
        self, command: Sequence[str], environment: Mapping[str, str], stdout: IO[bytes] | int | None, log: Path | None
    ) -> None:
        """Start one, with our standard input and output, or with none and a file to print to."""
        try:
            if log is None:
                process = self.guardian.start(command, environment, stdout=stdout)
            else:
                with log.open("wb") as opened:
                    null, same = subprocess.DEVNULL, subprocess.STDOUT
                    process = self.guardian.start(command, environment, stdin=null, stdout=opened, stderr=same)
            self.processes.append(process)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CaptureError(f"cannot run {command[0]}: {reason}") from error

    def wait(self, why_to_end: Callable[[], str], deadline: float | None, have_ended: Callable[[], bool]) -> str:
        """Wait until all have ended, or there is a reason to end them, which it gives."""
        failed_at = None
        busy_at = checked_at = time.monotonic()
        used = 0.0
        ready: Mapping[Path, float] = {}
        while any(process.poll() is None for process in self.processes):
            time.sleep(POLL_S)
            now = time.monotonic()
            if (failure := self._failure()) and failed_at is None:
                failed_at = now
            if failed_at is not None and now - failed_at > FAILED_GRACE_S:
                return f"{failure}, for which the others waited"
            if now - checked_at > CHECK_S:
                pids = [process.pid for process in self.processes]
                seconds, before, ready = processor_seconds(pids), ready, ready_seconds(pids)
                longest = max((spent - before.get(thread, 0.0) for thread, spent in ready.items()), default=0.0)
                is_idle = seconds is not None and 0 <= seconds - used < STALLED_SHARE * (now - checked_at)
                if not is_idle or longest > STARVED_SHARE * (now - checked_at):
                    busy_at = now
                elif now - busy_at > STALLED_S:
                    return (
                        ""
                        if have_ended()
                        else f"no process did anything for {STALLED_S:.0f} s: they waited for each other"
                    )
                checked_at, used = now, seconds or 0.0
            if deadline is not None and now > deadline:
                return "the time limit of --timeout was reached"
            if why := why_to_end():
                return why
        return ""

    def _failure(self) -> str:
        for rank, process in enumerate(self.processes):
            if status := process.poll():
                how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
                return f"process {rank} {how}"
        return ""

    def end(self) -> tuple[int | None, ...]:
        """End those that still run, which JAX would not let a SIGTERM do; the exit statuses of the others.

        What any of them has started ends, too.
        """
        statuses = tuple(process.poll() for process in self.processes)
        self.guardian.close()
        for process in self.processes:
            with suppress(OSError):
                process.kill()
            process.wait()
        return statuses


def _filled_in(command: Sequence[str], options: TraceOptions) -> list[str]:
    own = {RANK: str(options.rank), PROCESSES: str(options.processes)}
    return [own.get(part) or part.replace(RANK, own[RANK]).replace(PROCESSES, own[PROCESSES]) for part in command]


def _launcher_variables(options: TraceOptions) -> dict[str, str]:
    """Environment variables by which launchers describe the job to the processes that they start, one on each host."""
    rank, count = str(options.rank), str(options.processes)
    address, _, port = options.coordinator.rpartition(":")
    return {
        "JAX_COORDINATOR_ADDRESS": options.coordinator,
        "JAX_NUM_PROCESSES": count,
        "JAX_PROCESS_COUNT": count,
        "JAX_PROCESS_ID": rank,
        "JAX_PROCESS_INDEX": rank,
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "RANK": rank,
        "WORLD_SIZE": count,
        "LOCAL_RANK": "0",
        "NODE_RANK": rank,
        "SLURM_PROCID": rank,
        "SLURM_NTASKS": count,
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": rank,
        "OMPI_COMM_WORLD_RANK": rank,
        "OMPI_COMM_WORLD_SIZE": count,
        "OMPI_COMM_WORLD_LOCAL_RANK": "0",
        "HOSTNAME": f"{socket.gethostname()}-{rank}",
        **({"PYTHONHASHSEED": str(options.rank + 1)} if "PYTHONHASHSEED" not in os.environ else {}),
    }


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


PARENT, USER, SYSTEM = 1, 11, 12
"""Fields of /proc/PID/stat after the name of the command."""


def processor_seconds(pids: Iterable[int]) -> float | None:
    """Seconds of living processes and their descendants; None where the system does not say."""
    stats = _stats()
    if not stats:
        return None
    ticks = (int(stats[pid][USER]) + int(stats[pid][SYSTEM]) for pid in _descendants(pids, stats))
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def ready_seconds(pids: Iterable[int]) -> Mapping[Path, float]:
    """Seconds in which each of their threads ran or could have run: on a busy machine they wait for a processor."""
    found = {}
    for pid in _descendants(pids, _stats()):
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                ran, waited, *_ = path.read_text().split()
            except (OSError, ValueError):
                continue
            found[path] = (int(ran) + int(waited)) / 1e9
    return found


def _stats() -> Mapping[int, list[str]]:
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
    return found


def _descendants(pids: Iterable[int], stats: Mapping[int, list[str]]) -> Iterator[int]:
    wanted = set(pids)
    return (pid for pid in stats if _is_under(pid, wanted, stats))


def _is_under(pid: int, wanted: set[int], stats: Mapping[int, list[str]]) -> bool:
    while pid not in wanted and pid in stats:
        pid = int(stats[pid][PARENT])
    return pid in wanted
