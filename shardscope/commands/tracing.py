"""Running and recording a command, as one process with enough devices or as several, into a folder."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from shardscope.commands.live_list import live_list
from shardscope.configuration import configuration_above, devices, whole
from shardscope.inspector.capture.environment import interpreter_with_jax
from shardscope.inspector.capture.model import CaptureError
from shardscope.inspector.capture.protocol.trace import EVENTS_FILE, TraceOptions
from shardscope.inspector.capture.scratch import Scratch
from shardscope.inspector.capture.tracing import (
    MAX_PROCESSES,
    SITE_FOLDER,
    devices_of_each,
    is_output_file,
    output_file,
    run_traced,
)
from shardscope.inspector.render.printable import printable
from shardscope.inspector.report.traces import Trace
from shardscope.inspector.traces.read import RankWatch, is_trace, read_trace

MAX_LINES = 12
"""Maximum number of lines of a failed process's output."""


def add_recording_options(parser: argparse.ArgumentParser, match: str, processes: str) -> None:
    """Add what is recorded, and where."""
    parser.add_argument("--match", metavar="PROGRAM", help=match)
    parser.add_argument("--steps", type=whole(1, 10**9), metavar="N", help="end the script after N calls of it")
    parser.add_argument("--no-run", action="store_true", help="end the script before its first call")
    parser.add_argument(
        "--devices", type=devices, metavar="N", help="run on N fake CPU devices, in all processes together"
    )
    parser.add_argument("--processes", type=whole(1, MAX_PROCESSES), metavar="N", help=processes)
    parser.add_argument("--python", metavar="PATH", help="the interpreter to run the script with")
    parser.add_argument("--save", dest="folder", metavar="FOLDER", help="save the trace, for `shardscope open`")


def add_command(parser: argparse.ArgumentParser) -> None:
    """Add the command that is recorded, which takes all that follows."""
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a module, as python -m")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="script.py [ARGS]", help="or -- a command")


def recorded_of(options: argparse.Namespace, target: str, **more: Any) -> TraceOptions:
    """The options of a trace, with further fields.

    Raises:
        CaptureError: options of one program are given, and none is named.
    """
    given = [f"--{name.replace('_', '-')}" for name in ("steps", "no_run", "target") if vars(options).get(name)]
    if options.match is None and given:
        raise CaptureError(f"{' and '.join(given)} for which program? name it with --match")
    return TraceOptions(options.match, options.steps, not options.no_run, target=target, **more)


def traced_with_enough_devices(
    command: Sequence[str],
    folder: Path,
    recorded: TraceOptions,
    devices: int | None,
    stdout: IO[bytes] | None,
    *,
    quiet: bool = False,
) -> Trace:
    """Run a command; once more on fake devices, if it fails for want of devices and may be repeated."""
    with live_list(folder, command, quiet=quiet):
        trace = _traced(command, folder, recorded, devices, stdout)
    if not recorded.may_repeat or (wanted := _wanted_devices(trace)) is None:
        return trace
    print(f"shardscope: the script needs {wanted} devices: running it again on fake ones", file=sys.stderr)
    for process in folder.glob(f"*/{EVENTS_FILE}"):
        shutil.rmtree(process.parent)
    with live_list(folder, command, quiet=quiet):
        return _traced(command, folder, replace(recorded, target="cpu", may_repeat=False), wanted, stdout)


def _traced(
    command: Sequence[str], folder: Path, recorded: TraceOptions, devices: int | None, stdout: IO[bytes] | None
) -> Trace:
    ended = run_traced(command, folder, recorded, devices, stdout)
    return read_trace(folder, command, ended.status, ended.seconds)


def traced_as_processes(
    command: Sequence[str],
    folder: Path,
    recorded: TraceOptions,
    processes: int,
    devices: int | None,
    stdout: IO[bytes] | None,
    *,
    quiet: bool = False,
    skew: float = 0.0,
    at_rest: bool = True,
    timeout: float | None = None,
) -> Trace:
    """Run a command as several processes, which end when they wait for each other.

    What others than the first print is shown if they failed.
    """
    of_each = devices_of_each(processes, devices, recorded.target)
    recorded = replace(recorded, processes=processes, compare=True, skew=skew)
    watch = RankWatch(folder, at_rest=at_rest)
    with live_list(folder, command, quiet=quiet):
        ended = run_traced(
            command,
            folder,
            recorded,
            of_each,
            stdout,
            why_to_end=watch.why_to_end,
            timeout=timeout,
            have_ended=partial(watch.have_ended, processes),
        )
    for rank, status in enumerate(ended.statuses):
        if rank and status:
            lines = output_file(folder, rank).read_text(errors="replace").splitlines()[-MAX_LINES:]
            print(printable("\n".join((f"shardscope: last output of process {rank}", *lines))), file=sys.stderr)
    return replace(read_trace(folder, command, ended.status, ended.seconds, processes), ended=ended.why)


def _wanted_devices(trace: Trace) -> int | None:
    """The fake devices on which the script is to run again: where it failed on a CPU at once, for want of devices."""
    if not trace.processes or any(not program.compiled.internal for program in trace.programs):
        return None
    if any(process.backend is None or process.backend.platform != "cpu" for process in trace.processes):
        return None
    return max((process.wanted_devices or 0 for process in trace.processes), default=0) or None


def command_of(options: argparse.Namespace) -> Sequence[str]:
    """The command that the arguments name: a script, a module, or any after `--`."""
    settings = configuration_above(Path())
    python = interpreter_with_jax(options.python or settings.python)
    if options.module is not None:
        if not options.module:
            raise CaptureError("-m needs the name of a module")
        return (python, "-m", *options.module)
    first, *rest = options.command or [""]
    if first == "--":
        if not rest:
            raise CaptureError("no command after --")
        return rest
    if not first:
        raise CaptureError("nothing to run: name a script, -m MODULE, or -- COMMAND")
    if not os.path.isfile(first):
        raise CaptureError(f"there is no file {first}; a command comes after --, a module after -m")
    if first.endswith(".ipynb"):
        run = f"-- {python} -m nbconvert --to notebook --execute --stdout {first}"
        raise CaptureError(f"{first} is a notebook, not a script; it runs as a command: {run}")
    return (python, first, *rest)


@contextmanager
def folder_of(saved: str | None) -> Iterator[Path]:
    """The folder to record into: of that name, in place of an earlier trace, or one that is removed afterwards.

    An earlier trace stays if the command fails before anything is recorded.

    Raises:
        CaptureError: something else has that name.
    """
    if saved is None:
        with Scratch() as path:
            yield path
        return
    path = Path(saved).absolute()
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        is_new, is_earlier = _taken(path)
        if is_earlier:
            path.rename(aside)
    except OSError as error:
        raise CaptureError(f"cannot write to {saved}: {error.strerror}") from error
    try:
        yield path
    except BaseException:
        if not is_trace(path) and (is_new or is_earlier):
            shutil.rmtree(path, ignore_errors=True)
            if is_earlier:
                aside.rename(path)
        raise
    finally:
        if is_earlier:
            shutil.rmtree(aside, ignore_errors=True)


def _taken(path: Path) -> tuple[bool, bool]:
    """Return whether nothing has that name, and whether a trace has it; an empty folder is neither."""
    if not os.path.lexists(path):
        return True, False
    if not path.is_dir():
        raise CaptureError(f"{path} is no folder: --save takes the name of one")
    entries = list(path.iterdir())
    if entries and not all(map(_is_of_a_trace, entries)):
        raise CaptureError(f"{path} holds other files: --save takes a new folder, or that of an earlier trace")
    return False, bool(entries)


def _is_of_a_trace(path: Path) -> bool:
    return path.name == SITE_FOLDER or is_output_file(path.name) or (path / EVENTS_FILE).is_file()
