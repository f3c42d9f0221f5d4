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
from shardscope.commands.tracing import (
    add_command,
    add_recording_options,
    command_of,
    folder_of,
    recorded_of,
    traced_as_processes,
)
from shardscope.configuration import seconds
from shardscope.exit_code import ExitCode
from shardscope.inspector.render.renderers import renderer

SKEW_S = 3607.0
"""Seconds between the clocks of two processes: a program that depends on the time differs, even where it rounds it."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_recording_options(parser, "the program for --steps and --no-run", "number of processes (default: 4)")
    parser.add_argument(
        "--timeout", type=seconds, metavar="S", help="stop after S seconds, and compare what was recorded"
    )
    add_output_options(parser, "ranks")
    add_command(parser)


def run(options: argparse.Namespace) -> ExitCode:
    """Run the script, and show where its processes differ."""
    _take_processes(options)
    command = command_of(options)
    recorded = recorded_of(options, "cpu", shallow=True)
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
        if output.format == "tui":
            from shardscope.inspector.on_screen import analyses
            from shardscope.tui.app import show_ranks

            show_ranks(trace, analyses())
        else:
            write_rendered(renderer(output.format, "ranks")[1], trace, output)
    if trace.ranks.divergences:
        return ExitCode.FINDINGS
    if trace.status:
        return ExitCode.INTERRUPTED if trace.status in (-2, 130) else FAILED["died" if trace.status < 0 else "function"]
    return FAILED["died"] if trace.ended or not trace.ranks.ranks else ExitCode.DONE


def _take_processes(options: argparse.Namespace) -> None:
    """Take `--processes N` from behind the script, if the script is all that is before it."""
    match options.command:
        case [_, "--processes", count] if options.processes is None and count.isdecimal() and len(count) < 4:
            options.processes = int(count)
            del options.command[1:]
    options.processes = 4 if options.processes is None else options.processes
