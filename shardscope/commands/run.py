"""Capture a function and report how it is sharded.

Runs a script as it is until it calls the function, takes the arguments and the mesh of that call, lowers and compiles
it as it would run on many devices, and reports its collectives: mesh axes, bytes, executions, and the source line of
each. Without a name, the program of the script that matters most.

  shardscope train.py:step --layers 4         (options of shardscope come before the script)
  shardscope train.py
  shardscope -m package.train:step
  shardscope run package.module:Model.apply --arg 'f32[8,16]@x,-' --arg 'i32[8]'
  shardscope fsdp_tp:grad                     (one of `shardscope samples`)

Nothing is run but imports where arguments are given: by --arg; by --inputs; by the decorator
@shardscope.inputs(...); by the script's `<function>_inputs`, or its `inputs`.
"""

from __future__ import annotations

import argparse
import os
import re
import stat
from dataclasses import replace
from itertools import chain

from shardscope.commands.capturing import (
    add_capture_options,
    add_validation_option,
    beginning,
    request_of,
    settings_of,
    targets_of,
)
from shardscope.commands.output import add_finding_options, add_output_options, add_trial_options
from shardscope.configuration import Found
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.model import CaptureError
from shardscope.inspector.capture.protocol.request import PROBES, Request

MAX_NUMBERS = 1000
"""Maximum number of iterations, and of indices."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "function",
        help="script.py:function, package.module:function, or a sample's name; script.py alone: its main program",
    )
    add_capture_options(parser, one_target=False)
    parser.add_argument(
        "--live",
        action=argparse.BooleanOptionalAction,
        help="execute the compiled function (default: yes)",
    )
    parser.add_argument(
        "--probe",
        type=_probe,
        default="collectives",
        metavar="WHAT",
        help=f"record per-device values of: {', '.join(PROBES)}, or equation ids such as 1.4,1.7",
    )
    parser.add_argument(
        "--iterations",
        type=_numbers,
        default=tuple(range(8)),
        metavar="N,N-N",
        help="record values of these loop iterations and of the last (default: 0-7)",
    )
    parser.add_argument(
        "--window",
        type=_numbers,
        default=(),
        metavar="N,N",
        help="start index of the elements recorded of large arrays",
    )
    parser.add_argument("--reference", action="store_true", help="compare values with a run on one device")
    parser.add_argument(
        "--check-gradients",
        dest="gradients",
        action="store_true",
        help="compare the gradients that the function takes with finite differences, in float64",
    )
    parser.add_argument(
        "--passes",
        action="store_const",
        const="communication",
        default="",
        help="record the XLA passes that change communication, and their changes",
    )
    parser.add_argument(
        "--all-passes",
        dest="passes",
        action="store_const",
        const="all",
        help="record every pass that changes the program",
    )
    add_trial_options(parser)
    add_validation_option(parser)
    parser.add_argument("--watch", action="store_true", help="capture again whenever a file of the program is saved")
    parser.add_argument("--go-on", action="store_true", help="let the script go on after the call that is captured")
    parser.add_argument("--save", metavar="FILE", help="save the capture, for `shardscope open`")
    add_output_options(parser, "report", "reports")
    add_finding_options(parser)


def run(options: argparse.Namespace) -> ExitCode:
    """Capture, show, and return the exit status."""
    settings = settings_of(options.function)
    requests = [_request(options, settings, target) for target in targets_of(options, settings)]
    extract = "--links" if options.links else None if options.stage is None else "--stage"
    if extract is not None and len(requests) > 1:
        raise CaptureError(f"{extract} is of one target: name one with --target")
    if options.watch and (extract is not None or len(requests) > 1):
        raise CaptureError("--watch shows reports of one target: omit --stage and --links, and name one with --target")
    begin = beginning(options)
    first = begin(requests[0])
    # What shows a capture takes as long to import as Python and JAX do to start, which the capture does meanwhile.
    from shardscope.commands import show
    from shardscope.commands.job import job_of

    job = job_of(options, settings)
    return show.one(first, job) if len(requests) == 1 else show.several(chain([first], map(begin, requests[1:])), job)


def _request(options: argparse.Namespace, settings: Found, target: str) -> Request:
    said, is_extract = settings.configuration, options.stage is not None or options.links
    return replace(
        request_of(options, options.function, settings, target=target),
        live=not is_extract and next((live for live in (options.live, said.live) if live is not None), True),
        only_trace=options.stage == "jaxpr",
        stdin=_standard_input(),
    )


def _standard_input() -> str | None:
    """Piped or redirected standard input, as a file that each try of a capture can open; None on a terminal."""
    place = f"/proc/{os.getpid()}/fd/0"
    try:
        mode = os.stat(place).st_mode
    except OSError:  # not Linux, or closed
        return None
    return place if stat.S_ISREG(mode) or stat.S_ISFIFO(mode) else None


def _probe(text: str) -> str:
    if text not in PROBES and not re.fullmatch(r"\d+\.\d+(,\d+\.\d+)*", text.replace(" ", "")):
        message = f"{text!r} is not {', '.join(PROBES)}, or ids of equations as in 1.4,1.7"
        raise argparse.ArgumentTypeError(message)
    return text


def _numbers(text: str) -> tuple[int, ...]:
    """`0,3,5-7` as numbers."""
    numbers: list[int] = []
    for part in text.replace(" ", "").split(","):
        if not re.fullmatch(r"\d{1,9}(-\d{1,9})?", part):
            raise argparse.ArgumentTypeError(f"{text!r} is not numbers as in 0,3,5-7")
        first, _, last = part.partition("-")
        more = range(int(first), int(last or first) + 1)
        if not more:
            raise argparse.ArgumentTypeError(f"{part!r} ends before it begins")
        if len(numbers) + len(more) > MAX_NUMBERS:
            raise argparse.ArgumentTypeError(f"{text!r} is more than {MAX_NUMBERS} numbers")
        numbers += more
    return tuple(numbers)
