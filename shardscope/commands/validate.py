"""Evaluate a compiled program without its target, and compare it with the program that the compiler was given.

  shardscope validate script.py:step --target tpu:v5e:2x4
  shardscope validate script.py:step --target tpu:v5e:2x4 --target gpu:h100:8
  shardscope validate REPRODUCTION                              (the folder that a difference was written to)

Both programs are evaluated on all devices, in exact arithmetic: what differs is algebra, not rounding. The exit status
is 0 where all outputs are equal, 1 where one differs, and 2 where the program could not be evaluated.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from shardscope.commands.capturing import add_capture_options, kept_in, request_of, settings_of, targets_of, watched
from shardscope.commands.job import policy_of
from shardscope.commands.output import add_output_options, exit_code, output_of, write_report, write_result
from shardscope.configuration import seconds
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.model import Capture, Validation
from shardscope.inspector.capture.process import evaluated
from shardscope.inspector.capture.protocol.case import PROGRAM
from shardscope.inspector.capture.validation import SECONDS, begin_validated
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.overview import subject_text
from shardscope.inspector.render.printable import printable
from shardscope.inspector.render.validation import time_text, validation_lines

CODES = {"same": ExitCode.DONE, "differs": ExitCode.FINDINGS, "not evaluated": ExitCode.USAGE}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("function", help="script.py:function, a sample's name, or the folder of a reproduction")
    add_capture_options(parser, one_target=False)
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=SECONDS,
        metavar="S",
        help=f"evaluate for at most S seconds (default: {SECONDS:.0f})",
    )
    parser.add_argument(
        "--reproduction",
        metavar="FOLDER",
        help="where the files that show a difference are written (default: NAME.TARGET.validation)",
    )
    add_output_options(parser, "report", "reports", screen=False)


def run(options: argparse.Namespace) -> ExitCode:
    """Validate for each target, and return the worst result."""
    output = output_of(options)
    if (Path(options.function) / PROGRAM).exists():
        found, _ = evaluated(Path(options.function), options.seconds)
        write_result(f"{_text(found)}\n".encode(), output)
        return CODES[found.status]
    settings = settings_of(options.function)
    code = ExitCode.DONE
    for target in targets_of(options, settings):
        request = request_of(options, options.function, settings, target=target)
        kept = kept_in(request) if options.reproduction is None else Path(options.reproduction)
        last = watched(begin_validated(request, options.seconds, kept), quiet=options.quiet)
        report = inspect(last, policy_of(settings))
        if output.format != "text" or last.validation is None:
            code = max(code, write_report(report, output))
        else:
            write_result(f"{subject_text(report)}\n{_text(last.validation)}\n".encode(), output)
        code = max(code, code_of(last))
    return code


def code_of(capture: Capture) -> ExitCode:
    """Return the exit status of a validated capture."""
    return exit_code(capture) if capture.validation is None else CODES[capture.validation.status]


def _text(found: Validation) -> str:
    return "\n".join((*(printable(line.text) for line in validation_lines(found)), time_text(found)))
