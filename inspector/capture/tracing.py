"""Runs a command unmodified, with every Python process of it recorded into a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from ...parsers.record import Record
from ..targets.target import parse_target, topology_of
from .environment import child_environment
from .guardian import Guardian
from .model import CaptureError
from .protocol.bootstrap import SITE
from .protocol.names import FOLDER_VARIABLE, OPTIONS_VARIABLE
from .protocol.trace import TraceOptions

POLL_S = 0.2

GRACE_S = 5.0
"""Seconds that a command has to end after a SIGTERM, which ended this process."""

CACHE_VARIABLE = "JAX_ENABLE_COMPILATION_CACHE"

SITE_FOLDER = ".python"
"""In the folder of a trace, what makes Python record: it is first on PYTHONPATH."""


class Finished(Record, frozen=True):
    """The end of a command: its exit status, or a signal's number negated, and the seconds that it took."""

    status: int
    seconds: float


def run_traced(
    command: Sequence[str],
    folder: Path,
    options: TraceOptions,
    devices: int | None = None,
    stdout: IO[bytes] | int | None = None,
    cancelled: threading.Event | None = None,
) -> Finished:
    """Run a command to its end, with our standard input and, unless `stdout` is given, output.

    Ctrl-C is the command's: it ends when that does. With `cancelled`, in whatever thread, it has no input and output,
    and is ended when that is set.

    Raises:
        CaptureError: the command cannot be run. TargetError: there is no such target.
    """
    environment = environment_on_target(folder, options, devices)
    started = time.monotonic()
    null = None if cancelled is None else subprocess.DEVNULL
    with Guardian() as guardian:
        try:
            process = guardian.start(
                command,
                environment,
                stdin=null,
                stdout=null or stdout,
                stderr=null,
                start_new_session=cancelled is not None,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CaptureError(f"cannot run {command[0]}: {reason}") from error
        status = _foreground(process) if cancelled is None else _wait(process, cancelled)
    finished = Finished(status, time.monotonic() - started)
    if cancelled is None:
        check_recorded(folder)
    return finished


def _foreground(process: subprocess.Popen[bytes]) -> int:
    """The exit status of a process that Ctrl-C is left to. What else ends this process is handed on to it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return process.wait()
    except BaseException:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _wait(process: subprocess.Popen[bytes], cancelled: threading.Event) -> int:
    """The exit status of a process, which is ended with all that it has started when `cancelled` is set."""
    while process.poll() is None:
        if cancelled.wait(POLL_S):
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode


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
