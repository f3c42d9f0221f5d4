"""Options of the commands that show a report: which findings, and how a result is written."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, get_args

from shardscope.commands.numbers import whole
from shardscope.configuration import Found, Severity
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.model import STAGES, Capture, CaptureError, Failure
from shardscope.inspector.capture.output_file import OutputError, written
from shardscope.inspector.render.printable import without_commands
from shardscope.inspector.render.renderers import SECTIONS, Kind, formats, renderer
from shardscope.terminal import say, write
from shardscope.version import __version__

if TYPE_CHECKING:
    from shardscope.inspector.diff.targets import Comparison
    from shardscope.inspector.report import Report


PIPED_WIDTH = 160
"""Columns of a text report that does not go to a terminal."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""Severities of findings, worst first."""

FAILED: dict[str, ExitCode] = {
    "usage": ExitCode.USAGE,
    "function": ExitCode.FUNCTION_FAILED,
    "died": ExitCode.CAPTURE_DIED,
}


def add_output_options(parser: argparse.ArgumentParser, *kinds: Kind, screen: bool = True) -> None:
    """`--format`, of those that can show one of these kinds, and `-o`."""
    shown = "tui on a terminal, else text" if screen else "text"
    choices = (*(["tui"] if screen else []), *formats(*kinds))
    default = None if screen else "text"
    parser.add_argument("--format", choices=choices, default=default, help=f"output format (default: {shown})")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the result to FILE; - is standard output")
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only; use the exit status")
    if "report" in kinds:
        parser.add_argument(
            "--details",
            type=_sections,
            default=(),
            metavar="SECTIONS",
            help=f"add these sections in full, separated by commas: all, {', '.join(SECTIONS)}",
        )
        parser.add_argument(
            "--stage",
            choices=STAGES,
            metavar="STAGE",
            help=f"write the text of this stage alone, in place of a report: {', '.join(STAGES)}",
        )
        parser.add_argument(
            "-v", "--verbose", dest="details", action="store_const", const=("all",), help="same as --details all"
        )


def _sections(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, (part.strip() for part in text.split(","))))
    for name in names:
        if name not in (*SECTIONS, "all"):
            raise argparse.ArgumentTypeError(f"no section {name!r}; choose from all, {', '.join(SECTIONS)}")
    return names


def chosen_format(options: argparse.Namespace) -> str:
    """Return the format of the options: the screen, if there is one and no format is given."""
    if options.format is not None:
        return str(options.format)
    is_report = not getattr(options, "details", ()) and getattr(options, "stage", None) is None
    is_on_screen = is_report and options.output is None and not options.quiet
    is_on_screen = is_on_screen and os.environ.get("TERM") not in ("dumb", "unknown")
    return "tui" if is_on_screen and sys.stdout.isatty() and sys.stdin.isatty() else "text"


def prepare_output(format: str) -> None:
    """Import what writes a report, which takes a while, and is not needed before there is one."""
    _, render = renderer(format, "report", "reports")
    if "console" in signature(render).parameters:
        import shardscope.inspector.render.safe_console  # noqa: F401


def write_report(report: Report, format: str, options: argparse.Namespace, begun: Report | None = None) -> ExitCode:
    """Write a report, and return how its capture went; `begun` is what `write_beginning` wrote of it."""
    kind, render = renderer(format, "report", "reports")
    write_rendered(render, report if kind == "report" else (report,), options, begun=begun)
    return _told(report.capture, options)


def write_beginning(report: Report, options: argparse.Namespace) -> None:
    """Write of a text report what is known while the function still runs."""
    from shardscope.inspector.render.text import print_beginning

    write_rendered(print_beginning, report, options)


def write_comparison(comparison: Comparison, format: str, options: argparse.Namespace) -> ExitCode:
    """Write reports of several targets side by side, and return how the captures went: as the worst of them did."""
    kind, render = renderer(format, "comparison", "reports")
    write_rendered(render, comparison if kind == "comparison" else comparison.reports, options)
    return max(_told(report.capture, options) for report in comparison.reports)


def _told(capture: Capture, options: argparse.Namespace) -> ExitCode:
    """Return how a capture went; in words too, where the report that has them is in a file, or nowhere."""
    return after_screen(capture) if options.quiet or options.output not in (None, "-") else exit_code(capture)


def after_screen(capture: Capture) -> ExitCode:
    """Tell how a capture went whose report was on a screen that is gone; in words too, where it failed."""
    if capture.failure is not None:
        say(f"shardscope: {capture.failure.message}")
    elif capture.damage is not None:
        say(f"shardscope: the file is damaged, what follows is missing: {capture.damage}")
    return exit_code(capture)


def exit_code(capture: Capture) -> ExitCode:
    """Return the exit code of a capture."""
    match capture.failure:
        case Failure(kind=kind):
            return FAILED[kind]
        case None:
            return ExitCode.DONE if capture.damage is None else ExitCode.UNREADABLE_INPUT


def write_rendered(render: Callable[..., Any], subject: object, options: argparse.Namespace, **given: object) -> None:
    """Write what a renderer makes of a subject; text in the terminal's colours, or plain in a file or a pipe.

    With `--quiet` only a file is written.
    """
    output = None if options.output == "-" else options.output
    if options.quiet and output is None:
        return
    taken = signature(render).parameters
    offered = {
        "version": __version__,
        **{name: getattr(options, name, None) for name in ("around", "details")},
        **given,
    }
    render_it = partial(render, subject, **{name: value for name, value in offered.items() if name in taken})
    if "console" not in taken:
        made = render_it()
        write_result(made.encode() if isinstance(made, str) else made, output)
        return
    from io import StringIO

    from shardscope.inspector.render.safe_console import SafeConsole

    if output is None and sys.stdout.isatty():
        render_it(console=SafeConsole(highlight=False))
        return
    text = StringIO()
    render_it(console=SafeConsole(file=text, width=PIPED_WIDTH, highlight=False))
    lines = "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())
    write_result(without_commands(lines).encode(), output)


def write_stage(capture: Capture, options: argparse.Namespace) -> ExitCode:
    """Write the text of the stage of `--stage`, in place of a report, and return how its capture went.

    Raises:
        CaptureError: the capture ended well, and does not have it.
    """
    from shardscope.inspector.ir.program import Program

    program = Program(capture)
    stage = program.stage(options.stage)
    if stage is not None:
        write_rendered(lambda stage: without_commands(stage.text.text()), stage, options)
    elif capture.failure is None:
        recorded = ", ".join(each.name for each in program.stages) or "none"
        raise CaptureError(f"there is no stage {options.stage} in this capture; recorded: {recorded}")
    return after_screen(capture)


def write_result(data: bytes, output: str | None) -> None:
    """Write to a file, or to standard output, which also gets what a file turns out not to take."""
    if output is None:
        write(data)
        return
    try:
        with written(output) as file:
            file.write(data)
    except OutputError:
        if sys.stdout is not None:
            write(data)
        raise


@contextmanager
def reported_last(stack: ExitStack) -> Iterator[None]:
    """Raise what cannot be written only when the stack is left, so that what is known is shown all the same."""
    try:
        yield
    except OutputError as error:
        stack.callback(_raise, error)


def _raise(error: Exception) -> None:
    raise error


def add_finding_options(parser: argparse.ArgumentParser) -> None:
    """`--select`, `--ignore`, `--strict` and `--fail-on`."""
    parser.add_argument("--select", metavar="RULES", help="report only findings of these rules, for example SS01,SS04")
    parser.add_argument(
        "--ignore", metavar="RULES", help="ignore findings of these rules; `shardscope rules` lists them"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="treat implicit communication as an error, report unused suppressions, and exit with status 1 on errors",
    )
    parser.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        metavar="SEVERITY",
        help="exit with status 1 on findings of this severity or higher: error, warning or info",
    )


MAX_TRIAL_S = 3600
"""Seconds for which changes can be tried; `--verify` takes them all."""


def add_trial_options(parser: argparse.ArgumentParser) -> None:
    """`--try` and `--verify`."""
    parser.add_argument(
        "--try",
        dest="try_for",
        type=whole(0, MAX_TRIAL_S),
        metavar="SECONDS",
        help="try changes for so long: each is made in a copy of the source, compiled and compared; 0 for none"
        " (default: as long as the script and its compilation took, at least 2 and at most 20); a script that fails is"
        " run again with edits, unless this is 0",
    )
    parser.add_argument("--verify", action="store_true", help="try all changes, however long it takes")


def trial_seconds(options: argparse.Namespace, found: Found) -> float | None:
    """Return the seconds for which changes are tried; None for as many as the compilation took."""
    if options.try_for is not None:
        return float(options.try_for)
    return float(MAX_TRIAL_S) if options.verify or found.configuration.verify else None


def failed(code: ExitCode, report: Report, options: argparse.Namespace, found: Found) -> ExitCode:
    """Return the exit code with findings; earlier problems take precedence."""
    strict = options.strict or found.configuration.strict
    least = options.fail_on or found.configuration.fail_on or ("error" if strict else None)
    if code is not ExitCode.DONE or least is None:
        return code
    if not all(report.could_be_read(stage.name) for stage in report.program.stages):
        return ExitCode.UNREADABLE_INPUT
    bad = SEVERITIES[: SEVERITIES.index(least) + 1]
    return ExitCode.FINDINGS if any(each.severity in bad for each in report.findings) else code
