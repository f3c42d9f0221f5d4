"""What the commands that compare capture: a function, or what is kept in a file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from shardscope.commands.capturing import located, watched
from shardscope.configuration import Found
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import begin
from shardscope.inspector.load import load
from shardscope.inspector.render.printable import printable


def add_capture_options(parser: argparse.ArgumentParser) -> None:
    """Those of `run` that make another program of a function."""
    parser.add_argument("--arg", action="append", default=[], metavar="SPEC", help="an argument, as `run` takes it")
    parser.add_argument("--inputs", metavar="NAME", help="the name, in the script, of the arguments or what makes them")
    parser.add_argument("--devices", type=int, metavar="N", help="how many fake CPU devices (default: as needed)")
    parser.add_argument("--target", metavar="TARGET", help="what to compile for (default: cpu)")
    parser.add_argument("--python", metavar="PATH", help="the interpreter to run the script with")
    parser.add_argument("--timeout", type=float, metavar="S", help="give up on a capture after so many seconds")


def request_of(
    options: argparse.Namespace,
    function: str,
    settings: Found,
    *,
    target: str | None = None,
    python: str | None = None,
    overrides: Sequence[str] = (),
) -> Request:
    """The capture of one side, if it is a function; where no option says it, the settings do."""
    said = settings.configuration
    usual = said.target if isinstance(said.target, str) else next(iter(said.target or ()), None)
    chosen = target or options.target or usual or "cpu"
    return Request(
        function=located(function),
        args=tuple(options.arg),
        inputs=options.inputs,
        devices=options.devices or (said.devices if chosen == "cpu" else None),
        target=chosen,
        python=python or options.python or settings.python,
        live=False,
        timeout=said.timeout if options.timeout is None else options.timeout,
        overrides=tuple(overrides),
    )


def capture_side(given: str, request: Request) -> Capture:
    """What is kept in a file or folder, else what a request gives."""
    return load(given) if is_kept(given) else watched(begin(request))


def is_kept(given: str) -> bool:
    """Whether a side is no function but a file, a folder, or standard input."""
    return given == "-" or (os.path.exists(given) and not given.endswith(".py"))


def complain(side: str, capture: Capture, code: ExitCode) -> ExitCode:
    """Why one side could not be captured."""
    why = capture.failure
    said = capture.damage if why is None else "\n".join(filter(None, (why.message, why.details.rstrip(), why.hint)))
    print(printable(f"shardscope: {side}: {said}"), file=sys.stderr)
    return code
