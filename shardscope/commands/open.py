"""Show a saved capture, or dumped StableHLO or HLO.

Opens a capture that `shardscope run --save` wrote, StableHLO, sdy or HLO text (`-` for standard input), or a folder
of XLA dumps. JAX is not needed, but to try changes of a capture's script.

  shardscope open step.shardscope
  shardscope open step.shardscope --try 20
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from shardscope.commands.job import job_of, present
from shardscope.commands.output import add_finding_options, add_output_options, add_try_option
from shardscope.configuration import configuration_above
from shardscope.exit_code import ExitCode
from shardscope.inspector.load import load
from shardscope.terminal import progress


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("path", help="a capture, a text, a folder of dumps, or -")
    parser.add_argument("--module", metavar="NAME", help="the module to show, if there are several")
    parser.add_argument(
        "--python", metavar="PATH", help="the interpreter whose jaxlib reads bytecode and protocol buffers"
    )
    add_output_options(parser, "report", "reports", "trace")
    add_finding_options(parser)
    text = "run the script of a capture again, if it has not changed, and try changes for so long (default: 0)"
    add_try_option(parser, text)


def run(options: argparse.Namespace) -> ExitCode:
    """Load, and show."""
    settings = configuration_above(Path())
    job = job_of(options, settings)
    if (path := Path(options.path)).is_dir():
        from shardscope.inspector.traces.read import is_trace, read_trace

        if is_trace(path):
            from shardscope.commands.trace import show as show_trace

            return show_trace(read_trace(path), options.module, job)
    with progress(f"reading {options.path}", quiet=options.quiet):
        capture = load(options.path, options.module, options.python or settings.python)
    if options.try_for:
        from shardscope.commands.show import one
        from shardscope.inspector.capture.again import request_in
        from shardscope.inspector.capture.spawn import Cancellation, CaptureHandle

        request = request_in(capture, options.python or settings.python)
        here = replace(capture, foreign=False)  # it is the user's wish that its script is run
        return one(CaptureHandle(request, iter((here,)), Cancellation()), job)
    return present(capture, job)
