"""Capture a function, and show what is in it.

Traces, lowers and compiles the function as it would run on many devices, and shows what it communicates, over
which mesh axes, how much, and from which line.

  shardscope run script.py:step
  shardscope run package.module:Model.apply --arg 'f32[8,16]@x,-' --arg 'i32[8]'
  shardscope run fsdp_tp:grad                 (one of `shardscope samples`)

The arguments are taken from the first of these that there is: --arg; --inputs; the decorator
@shardscope.inputs(...); the script's `<function>_inputs`; its `inputs`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from shardscope.commands.capturing import located, settings_of, watched_capture
from shardscope.commands.chosen_findings import add_finding_options, failed, policy_of
from shardscope.commands.output import (
    add_output_options,
    after_screen,
    chosen_format,
    write_comparison,
    write_report,
)
from shardscope.configuration import Found
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.child.request import Request
from shardscope.inspector.capture.file import save
from shardscope.inspector.compare import compare
from shardscope.inspector.improved import improved
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Report

MOST_NUMBERS = 1000
"""Of iterations, and of indices."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("function", help="script.py:function, package.module:function, or a sample's name")
    parser.add_argument("argv", nargs="*", metavar="-- ARGS", help="the script's own sys.argv")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="TYPE",
        help="an argument's type and PartitionSpec, as in f32[8,16]@x,y; or a JSON object or list of such",
    )
    parser.add_argument("--inputs", metavar="NAME", help="the name, in the script, of the arguments or what makes them")
    parser.add_argument("--devices", type=_positive, metavar="N", help="how many fake CPU devices (default: as needed)")
    parser.add_argument(
        "--target",
        action="append",
        metavar="TARGET",
        help="what to compile for: cpu (the default), cpu:16, local, tpu:v5p:4x4x4, gpu:h100:8x4; see `targets`;"
        " several are shown side by side",
    )
    parser.add_argument("--python", metavar="PATH", help="the interpreter to run the script with")
    parser.add_argument(
        "--live",
        action=argparse.BooleanOptionalAction,
        help="whether the compiled function is also run (default: it is)",
    )
    parser.add_argument(
        "--probe",
        default="collectives",
        metavar="WHAT",
        help="whose values to show on each device: collectives, all, none, or equations' ids as in 1.4,1.7",
    )
    parser.add_argument(
        "--iterations",
        type=_numbers,
        default=tuple(range(8)),
        metavar="N,N-N",
        help="of each loop, those to show values of, beside the last (default: 0-7)",
    )
    parser.add_argument(
        "--window", type=_numbers, default=(), metavar="N,N", help="where in large arrays to begin to show elements"
    )
    parser.add_argument("--reference", action="store_true", help="compare the values with a run on one device")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="for made-up values of abstract arguments")
    parser.add_argument("--timeout", type=float, metavar="S", help="give up after so many seconds")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="try the changes that mend findings, on a copy of the source: capture again, and compare",
    )
    parser.add_argument("--save", metavar="FILE", help="keep the capture, for `shardscope open`")
    add_output_options(parser)
    add_finding_options(parser)


def run(options: argparse.Namespace) -> ExitCode:
    """Capture, show, and tell how it went."""
    settings = settings_of(options.function)
    policy = policy_of(options, settings)
    requests = [_request(options, settings, target) for target in dict.fromkeys(_targets(options, settings))]
    if len(requests) > 1:
        return _compare(requests, options, settings)
    (request,) = requests
    format = chosen_format(options)
    if format == "tui":
        from shardscope.tui.app import show_live

        last = show_live(request, policy, verify=_verifies(options, settings))
    else:
        last = watched_capture(request)
    if options.save is not None and last.subject is not None:
        save(last, options.save)
    if format == "tui":
        return after_screen(last)
    report = _tried(inspect(last, policy), request, options, settings)
    return failed(write_report(report, format, options.output), report, options, settings)


def _compare(requests: Sequence[Request], options: argparse.Namespace, settings: Found) -> ExitCode:
    """One capture for each target, and their collectives side by side."""
    format, policy = chosen_format(options), policy_of(options, settings)
    if format == "tui":
        from shardscope.tui.app import show_targets

        captures = list(show_targets(requests, policy))
    else:
        captures = [watched_capture(request) for request in requests]
    for request, captured in zip(requests, captures, strict=True):
        if options.save is not None and captured.subject is not None:
            path = Path(options.save)
            save(captured, str(path.with_stem(f"{path.stem}.{re.sub(r'[^A-Za-z0-9]+', '-', request.target)}")))
    if format == "tui":
        return ExitCode.DONE
    targets = tuple(request.target for request in requests)
    found = [inspect(captured, policy) for captured in captures]
    reports = tuple(_tried(*pair, options, settings) for pair in zip(found, requests, strict=True))
    code = write_comparison(compare(targets, reports), format, options.output)
    return max(failed(code, report, options, settings) for report in reports)


def _verifies(options: argparse.Namespace, settings: Found) -> bool:
    return options.verify or settings.configuration.verify


def _tried(report: Report, request: Request, options: argparse.Namespace, settings: Found) -> Report:
    """The report, with why the function does not trace, or with what came of trying changes if that is wanted."""
    policy = policy_of(options, settings)
    improve = partial(improved, request=request, policy=policy, verify=_verifies(options, settings))
    console = Console(stderr=True)
    if not console.is_terminal:
        return improve(report)
    with console.status("") as status:
        return improve(report, tell=lambda what: status.update(f"{what} …"))


def _targets(options: argparse.Namespace, settings: Found) -> Sequence[str]:
    said = options.target or settings.configuration.target or "cpu"
    return (said,) if isinstance(said, str) else tuple(said)


def _request(options: argparse.Namespace, settings: Found, target: str) -> Request:
    said = settings.configuration
    return Request(
        function=located(options.function),
        args=tuple(options.arg),
        inputs=options.inputs,
        devices=options.devices or (said.devices if target == "cpu" else None),
        target=target,
        python=options.python or settings.python,
        live=next((live for live in (options.live, said.live) if live is not None), True),
        seed=options.seed,
        probe=options.probe,
        iterations=options.iterations,
        window=options.window,
        reference=options.reference,
        fingerprints=_verifies(options, settings),
        timeout=said.timeout if options.timeout is None else options.timeout,
        argv=tuple(options.argv),
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is no number of devices")
    return number


def _numbers(text: str) -> tuple[int, ...]:
    """`0,3,5-7` as numbers."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers[:MOST_NUMBERS])
