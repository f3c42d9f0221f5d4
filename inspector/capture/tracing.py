"""Runs a command unmodified, with every Python process of it recorded into a folder.

As several processes it stands for one of a cluster: the first has our standard input and output; what the others print
is kept in the folder of the trace.
"""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

from ...parsers.record import Record
from ..targets.target import parse_target, topology_of
from .children import Children
from .environment import DEFAULT_DEVICES, child_environment
from .model import CaptureError
from .protocol import FOLDER_VARIABLE, OPTIONS_VARIABLE
from .protocol.bootstrap import SITE
from .protocol.trace import TraceOptions

MAX_PROCESSES = 256

CACHE_VARIABLE = "JAX_ENABLE_COMPILATION_CACHE"

SITE_FOLDER = ".python"
"""In the folder of a trace, what makes Python record: it is first on PYTHONPATH."""

OUTPUT_FILE = "output-{}.txt"

RANK, PROCESSES = "{rank}", "{processes}"
"""In arguments of a script that several processes run, these are replaced."""


class Finished(Record, frozen=True):
    """The end of a command, and the seconds that it took.

    The exit statuses of its processes, or signals' numbers negated, None for one that was ended by us; `why` it was.
    """

    statuses: tuple[int | None, ...]
    why: str
    seconds: float

    @property
    def status(self) -> int:
        """The first status that is not 0."""
        return next((status for status in self.statuses if status), 0)


def run_traced(
    command: Sequence[str],
    folder: Path,
    options: TraceOptions,
    devices: int | None = None,
    stdout: IO[bytes] | int | None = None,
    cancelled: threading.Event | None = None,
    why_to_end: Callable[[], str] = str,
    timeout: float | None = None,
    have_ended: Callable[[], bool] = bool,
) -> Finished:
    """Run a command to its end, with our standard input and, unless `stdout` is given, output.

    Ctrl-C is the command's: it ends when that does. With `cancelled`, in whatever thread, it has no input and output,
    and is ended when that is set.

    As `options.processes` processes, each with so many devices, it is ended when one has failed, when `why_to_end`
    gives a reason, when all wait, or after `timeout` seconds. JAX's processes sometimes hang as Python ends: that is no
    reason once their scripts `have_ended`.

    Raises:
        CaptureError: the command cannot be run. TargetError: there is no such target.
    """
    started = time.monotonic()
    is_ours = cancelled is None
    null = None if is_ours else subprocess.DEVNULL
    reasons = [lambda: "cancelled" if cancelled is not None and cancelled.is_set() else None]
    children = Children()
    before = signal.getsignal(signal.SIGINT)
    try:
        if options.processes == 1:
            environment = environment_on_target(folder, options, devices)
            streams = {"stdin": null, "stdout": null or stdout, "stderr": null}
            _begin(children, command, environment, start_new_session=not is_ours, **streams)
        else:
            deadline = math.inf if timeout is None else started + timeout
            late = "the time limit of --timeout was reached"
            reasons = [
                children.failed,
                children.stalled(have_ended),
                lambda: late if time.monotonic() > deadline else None,
                lambda: why_to_end() or None,
            ]
            options = replace(options, coordinator=f"127.0.0.1:{_free_port()}")
            for rank in range(options.processes):
                _begin_rank(children, command, folder, replace(options, rank=rank), devices, stdout)
        if is_ours:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # not before: Ctrl-C is theirs
        why = children.wait(*reasons)
    finally:
        statuses = children.end(is_gentle=is_ours and options.processes == 1)
        if is_ours:
            signal.signal(signal.SIGINT, before)
    if is_ours:
        check_recorded(folder)
    return Finished(statuses, why, time.monotonic() - started)


def _begin_rank(
    children: Children,
    command: Sequence[str],
    folder: Path,
    options: TraceOptions,
    devices: int | None,
    stdout: IO[bytes] | int | None,
) -> None:
    """Begin one of several, with our standard input and output, or with none and a file to print to."""
    own = {RANK: str(options.rank), PROCESSES: str(options.processes)}
    filled = [own.get(part) or part.replace(RANK, own[RANK]).replace(PROCESSES, own[PROCESSES]) for part in command]
    environment = {**environment_on_target(folder, options, devices), **_launcher_variables(options)}
    if options.rank == 0:
        _begin(children, filled, environment, stdout=stdout)
        return
    with output_file(folder, options.rank).open("wb") as log:
        _begin(children, filled, environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def _begin(children: Children, command: Sequence[str], environment: Mapping[str, str], **options: Any) -> None:
    try:
        children.begin(command, environment, **{"start_new_session": False, **options})
    except (OSError, ValueError) as error:
        raise CaptureError(f"cannot run {command[0]}: {getattr(error, 'strerror', None) or error}") from error


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


def output_file(folder: Path, rank: int) -> Path:
    """The file of standard output of a process other than the first."""
    return folder / OUTPUT_FILE.format(rank)


def is_output_file(name: str) -> bool:
    """Return whether a file has such a name."""
    return fnmatchcase(name, OUTPUT_FILE.format("*"))


COUNTS = ("JAX_NUM_PROCESSES", "JAX_PROCESS_COUNT", "WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")
RANKS: tuple[str, ...] = ("JAX_PROCESS_ID", "JAX_PROCESS_INDEX", "RANK", "NODE_RANK", "SLURM_PROCID", "SLURM_NODEID")
RANKS += ("OMPI_COMM_WORLD_RANK",)
"""Environment variables of launchers with the number of processes, and with that of one: each is alone on its host."""


def _launcher_variables(options: TraceOptions) -> dict[str, str]:
    """Environment variables by which launchers describe the job to the processes that they start, one on each host."""
    address, _, port = options.coordinator.rpartition(":")
    alone = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
    return {
        **dict.fromkeys(RANKS, str(options.rank)),
        **dict.fromkeys(COUNTS, str(options.processes)),
        **dict.fromkeys(alone, "0"),
        "JAX_COORDINATOR_ADDRESS": options.coordinator,
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "HOSTNAME": f"{socket.gethostname()}-{options.rank}",
        **({"PYTHONHASHSEED": str(options.rank + 1)} if "PYTHONHASHSEED" not in os.environ else {}),
    }


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def check_recorded(folder: Path) -> None:
    """Raise CaptureError if the folder of a trace is gone."""
    if not (folder / SITE_FOLDER).is_dir():
        raise CaptureError(f"{folder} was removed while the command ran: nothing is recorded")


def environment_on_target(folder: Path, options: TraceOptions, devices: int | None) -> dict[str, str]:
    """The environment in which a command records, with fake devices where the target is not of this machine."""
    target = parse_target(options.target)
    topology = topology_of(target)
    options = replace(options, topology="" if topology is None else json.dumps(topology))
    environment = traced_environment(os.environ, folder, options)
    if target.platform == "local":
        return environment
    faked = child_environment(environment, target, devices or target.devices)
    faked.pop(CACHE_VARIABLE)
    return faked | ({CACHE_VARIABLE: os.environ[CACHE_VARIABLE]} if CACHE_VARIABLE in os.environ else {})


def traced_environment(environment: Mapping[str, str], folder: Path, options: TraceOptions) -> dict[str, str]:
    """The environment in which every Python process records into a folder, which is made ready for that."""
    site = folder / SITE_FOLDER
    try:
        site.mkdir(parents=True, exist_ok=True)
        (site / "sitecustomize.py").write_text(SITE)
    except OSError as error:
        raise CaptureError(f"cannot write to {folder}: {error.strerror}") from error
    path = os.pathsep.join(filter(None, (str(site), environment.get("PYTHONPATH"))))
    return {
        **environment,
        "PYTHONPATH": path,
        FOLDER_VARIABLE: str(folder),
        OPTIONS_VARIABLE: options.encode(),
    }
