"""Run a script as several processes of jax.distributed, and compare the programs that they compile and call.

Each process has a coordinator on this machine and fake CPU devices. Processes that run different programs, or the same
in another order, hang on a cluster: the first differing operation is reported with its line.

  shardscope ranks --processes 4 train.py --layers 2
  shardscope ranks train.py --processes 4
  shardscope ranks --processes 4 -m package.train

The processes end with the script, or some seconds after they have diverged. Exit status: 1 where they differ.
"""

from __future__ import annotations

import argparse
import sys

from shardscope.commands.output import FAILED, add_output_options, output_of, write_rendered
from shardscope.commands.tracing import command_of, folder_of, processes, steps, traced_as_processes
from shardscope.configuration import devices, seconds
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.model import CaptureError
from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.render.renderers import renderer
from shardscope.inspector.traces.ranks import compare_ranks

SKEW_S = 3607.0
"""Seconds between the clocks of two processes: a program that depends on the time differs, even where it rounds it."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--processes", type=processes, default=None, metavar="N", help="number of processes (default: 4)"
    )
    parser.add_argument(
        "--devices", type=devices, metavar="N", help="number of fake CPU devices, in all processes together"
    )
    parser.add_argument("--match", metavar="PROGRAM", help="the program for --steps and --no-run")
    parser.add_argument("--steps", type=steps, metavar="N", help="end the script after N calls of it")
    parser.add_argument("--no-run", action="store_true", help="end the script before its first call")
    parser.add_argument(
        "--timeout", type=seconds, metavar="S", help="stop after S seconds, and compare what was recorded"
    )
    parser.add_argument("--python", metavar="PATH", help="the interpreter to run the script with")
    parser.add_argument("--save", dest="folder", metavar="FOLDER", help="save the trace, for `shardscope open`")
    add_output_options(parser, "ranks")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a module, as python -m")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="script.py [ARGS]", help="or -- a command")


def run(options: argparse.Namespace) -> ExitCode:
    """Run the script, and show where its processes differ."""
    _take_processes(options)
    command = command_of(options)
    if options.match is None and (options.steps is not None or options.no_run):
        raise CaptureError("--steps and --no-run need one program: name it with --match")
    recorded = TraceOptions(options.match, options.steps, not options.no_run, "cpu", shallow=True)
    output = output_of(options)
    stdout = sys.stderr.buffer if output.is_document else None
    with folder_of(options.folder) as folder:
        trace = traced_as_processes(
            command,
            folder,
            recorded,
            options.processes,
            options.devices,
            stdout,
            quiet=output.quiet,
            skew=SKEW_S,
            at_rest=False,
            timeout=options.timeout,
        )
        found = compare_ranks(trace, options.processes)
        if output.format == "tui":
            from shardscope.tui.app import show_ranks

            show_ranks(trace, found)
        else:
            write_rendered(renderer(output.format, "ranks")[1], (trace, found), output)
    if found.divergences:
        return ExitCode.FINDINGS
    if trace.status:
        return ExitCode.INTERRUPTED if trace.status in (-2, 130) else FAILED["died" if trace.status < 0 else "function"]
    return FAILED["died"] if trace.ended or not found.ranks else ExitCode.DONE


def _take_processes(options: argparse.Namespace) -> None:
    """Take `--processes N` from behind the script, if the script is all that is before it."""
    match options.command:
        case [_, "--processes", count] if options.processes is None and count.isdecimal() and len(count) < 4:
            options.processes = int(count)
            del options.command[1:]
    options.processes = 4 if options.processes is None else options.processes
