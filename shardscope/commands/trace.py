"""Run a script as it is, and list every program that JAX compiles.

The script runs unmodified, with its own arguments, working directory, environment, input and output. The list is ranked
by what the programs communicate in all of their calls; --match shows the full report of one of them.

  shardscope trace train.py --lr 0.1
  shardscope trace --match train_step --devices 8 train.py --layers 4
  shardscope trace -m package.train
  shardscope trace -- torchrun train.py

Options of shardscope come before the script.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from shardscope.commands.output import (
    FAILED,
    add_finding_options,
    add_output_options,
    after_screen,
    chosen_format,
    failed,
    write_rendered,
    write_report,
)
from shardscope.configuration import configuration_above
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture import file
from shardscope.inspector.capture.environment import user_devices
from shardscope.inspector.capture.model import Capture, CaptureError
from shardscope.inspector.capture.propagation import has_mesh, propagated
from shardscope.inspector.capture.protocol.trace import EVENTS_FILE, TraceOptions
from shardscope.inspector.capture.scratch import Scratch
from shardscope.inspector.capture.several import devices_of_each, output_file, run_processes
from shardscope.inspector.capture.tags import tagged
from shardscope.inspector.capture.tracing import run_traced
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.printable import printable
from shardscope.inspector.render.renderers import formats, renderer
from shardscope.inspector.traces.rank_watch import RankWatch
from shardscope.inspector.traces.read import read_trace
from shardscope.inspector.traces.trace import Program, Trace
from shardscope.policies import policy_of

MAX_LINES = 12
"""Of what a process printed that failed."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--match", metavar="PROGRAM", help="report this program in full: an id of the list, or step*")
    parser.add_argument("--steps", type=int, metavar="N", help="end the script after N calls of it")
    parser.add_argument("--no-run", action="store_true", help="end the script before its first call")
    parser.add_argument("--devices", type=int, metavar="N", help="run on so many fake CPU devices, of all processes")
    parser.add_argument("--processes", type=int, metavar="N", help="run as so many processes of jax.distributed")
    parser.add_argument("--target", metavar="TARGET", help="compile it for this; the script runs on fake devices")
    parser.add_argument(
        "--abstract", action="store_true", help="allocate no large arrays, and do not compute with them"
    )
    parser.add_argument("--python", metavar="PATH", help="the interpreter to run the script with")
    parser.add_argument("--save", metavar="FOLDER", help="keep what is recorded, for `shardscope open`")
    add_output_options(parser, "report", "reports", "trace")
    add_finding_options(parser)
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a module, as python -m")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="script.py [ARGS]", help="or -- a command")


def run(options: argparse.Namespace) -> ExitCode:
    """Run the script, and show what was recorded."""
    command = command_of(options)
    if options.match is None and (options.steps is not None or options.no_run or options.target is not None):
        raise CaptureError("--steps, --no-run and --target are about one program: name it with --match")
    is_local = options.devices is None and options.processes is None and not options.abstract
    target = options.target or ("local" if is_local else "cpu")
    recorded = TraceOptions(options.match, options.steps, not options.no_run, target, abstract=options.abstract)
    is_document = chosen_format(options) not in ("text", "tui") and options.output in (None, "-")
    with folder_of(options.save) as folder:
        stdout = sys.stderr.buffer if is_document else None
        if options.processes is not None:
            trace = traced_as_processes(command, folder, recorded, options, stdout)
        else:
            trace = _with_enough_devices(command, folder, recorded, options, stdout)
        return max(_exit_code(trace), show(trace, options.match, options, python=command[0], foreign=False))


def _with_enough_devices(
    command: Sequence[str], folder: Path, recorded: TraceOptions, options: argparse.Namespace, stdout: IO[bytes] | None
) -> Trace:
    """Run a command; once more on fake devices, if it fails for want of devices."""
    trace = _traced(command, folder, recorded, options.devices, stdout)
    if (wanted := _wanted_devices(trace, options)) is None:
        return trace
    print(f"shardscope: the script needs {wanted} devices: once more, on fake ones", file=sys.stderr)
    for process in folder.glob(f"*/{EVENTS_FILE}"):
        shutil.rmtree(process.parent)
    return _traced(command, folder, replace(recorded, target="cpu"), wanted, stdout)


def _traced(
    command: Sequence[str], folder: Path, recorded: TraceOptions, devices: int | None, stdout: IO[bytes] | None
) -> Trace:
    ended = run_traced(command, folder, recorded, devices, stdout)
    return read_trace(folder, command, ended.status, ended.seconds)


def traced_as_processes(
    command: Sequence[str],
    folder: Path,
    recorded: TraceOptions,
    options: argparse.Namespace,
    stdout: IO[bytes] | None,
    *,
    skew: float = 0.0,
    at_rest: bool = True,
    timeout: float | None = None,
) -> Trace:
    """Run a command as several processes, which end when they wait for each other; what others than the first print
    is shown if it failed."""
    devices = devices_of_each(options.processes, options.devices, recorded.target)
    recorded = replace(recorded, processes=options.processes, compare=True, skew=skew)
    watch = RankWatch(folder, at_rest=at_rest)
    ended = run_processes(command, folder, recorded, devices, stdout, watch.why_to_end, timeout)
    for rank, status in enumerate(ended.statuses):
        if rank and status:
            lines = output_file(folder, rank).read_text(errors="replace").splitlines()[-MAX_LINES:]
            print(printable("\n".join((f"shardscope: process {rank} printed at last", *lines))), file=sys.stderr)
    return replace(read_trace(folder, command, ended.status, ended.seconds), ended=ended.why)


def _wanted_devices(trace: Trace, options: argparse.Namespace) -> int | None:
    """The fake devices on which the script is to run again: where it failed on a CPU at once, for want of devices."""
    if options.devices is not None or options.target is not None or user_devices(os.environ) is not None:
        return None
    if not trace.processes or any(not program.compiled.internal for program in trace.programs):
        return None
    if any(process.backend is None or process.backend.platform != "cpu" for process in trace.processes):
        return None
    return max((process.wanted_devices or 0 for process in trace.processes), default=0) or None


def show(
    trace: Trace,
    wanted: str | None,
    options: argparse.Namespace,
    *,
    python: str = sys.executable,
    foreign: bool = True,
) -> ExitCode:
    """Show the list, or the full report of one program: of several that are wanted what communicates most.

    A trace is `foreign` unless this process has made it.
    """
    format = chosen_format(options)
    if wanted is None:
        format = "text" if format == "tui" else format
        if format not in formats("trace"):
            raise CaptureError(f"a list of programs is shown as {' or '.join(formats('trace'))}; or name one program")
        write_rendered(renderer(format, "trace")[1], trace, options)
        return ExitCode.DONE
    shown, *others = _matching(trace, wanted)
    if others:
        names = ", ".join(trace.id_of(program) for program in others)
        print(printable(f"shardscope: shown is {trace.id_of(shown)}; there are also {names}"), file=sys.stderr)
    settings = configuration_above(Path())
    policy = policy_of(settings, options.select, options.ignore, options.strict)
    capture = replace(_capture_of(shown, python), foreign=foreign)
    if format == "tui":
        from shardscope.tui.app import show as show_capture

        show_capture(capture, policy)
        return after_screen(capture)
    report = inspect(capture, policy)
    return failed(write_report(report, format, options), report, options, settings)


def _matching(trace: Trace, wanted: str) -> Sequence[Program]:
    """The programs that are captured, and whose name or id is wanted; those in full before the others."""
    found = [
        program
        for program in trace.merged
        if program.path is not None
        and any(fnmatchcase(name, wanted) for name in (trace.id_of(program), *_names(program)))
    ]
    if not found:
        names = list(dict.fromkeys(program.compiled.name for program in trace.programs if not program.is_helper))
        near = get_close_matches(wanted, names, n=3) or names[:8]
        known = f"; compiled were {', '.join(near)}" if near else "; JAX compiled no program of the script's"
        raise CaptureError(f"no program matches {wanted!r}{known}")
    return sorted(found, key=lambda program: program.compiled.captured != "full")


def _names(program: Program) -> Sequence[str]:
    return program.compiled.id, program.compiled.name


def command_of(options: argparse.Namespace) -> Sequence[str]:
    """The command that the arguments name: a script, a module, or any after `--`."""
    settings = configuration_above(Path())
    python = options.python or settings.python or sys.executable
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
    return (python, first, *rest)


@contextmanager
def folder_of(saved: str | None) -> Iterator[Path]:
    """The folder to record into: a new one of that name, or one that is removed afterwards."""
    if saved is not None:
        path = Path(saved)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise CaptureError(f"{saved} exists: --save takes the name of a new folder")
        yield path.absolute()
        return
    with Scratch() as path:
        yield path


def _capture_of(program: Program, python: str) -> Capture:
    """What was captured of a program, with the origins of its shardings."""
    assert program.path is not None
    capture = file.load(program.path)
    lowered = capture.stage("stablehlo")
    if lowered is None or not has_mesh(lowered.source.data):
        return capture
    return propagated(capture, tagged(lowered.source.data, lowered.tags), python, os.environ)


def _exit_code(trace: Trace) -> ExitCode:
    """How the command ended."""
    status = trace.status or 0
    if any(process.stopped for process in trace.processes) or status == 0:
        return ExitCode.DONE
    if status in (-2, 130):
        return ExitCode.INTERRUPTED
    return FAILED["died"] if status < 0 else FAILED["function"]
