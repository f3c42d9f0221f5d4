"""Options of the commands that show a result, and its way to the screen, a terminal or a file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, get_args

from shardscope.configuration import Severity, whole
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.model import STAGES, Capture, CaptureError, Failure
from shardscope.inspector.capture.output_file import OutputError, written
from shardscope.inspector.render.printable import without_commands
from shardscope.inspector.render.renderers import SECTIONS, Kind, formats, renderer
from shardscope.parsers.record import Record
from shardscope.terminal import say, write
from shardscope.version import __version__

if TYPE_CHECKING:
    from shardscope.inspector.report import Report
    from shardscope.inspector.report.comparison import Comparison


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
            "--links",
            action="store_true",
            help="write, in place of a report, what each part of a compiled collective was in every stage before",
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


class Output(Record, frozen=True):
    """The format of a result, `tui` for the screen, and the file that it goes to, None for standard output.

    `details` are the sections of a report that are shown in full, `stage` the one whose text is written in its place,
    `links` whether those of compiled collectives are.
    `around` counts the changes whose text is shown. With `quiet` only a file is written.
    """

    format: str
    file: str | None = None
    quiet: bool = False
    details: tuple[str, ...] = ()
    stage: str | None = None
    links: bool = False
    around: int = 0

    @property
    def is_extract(self) -> bool:
        """True of what needs no report: the text of a stage, or links."""
        return self.stage is not None or self.links

    @property
    def is_document(self) -> bool:
        """True of what programs read on standard output, to which nothing else may be written."""
        return self.format not in ("text", "tui") and self.file is None


def output_of(options: argparse.Namespace) -> Output:
    """The output that the options ask for: the screen, if there is one and no format is given."""
    given = vars(options)
    details, stage, file, quiet = tuple(given.get("details", ())), *map(given.get, ("stage", "output", "quiet"))
    links = bool(given.get("links"))
    is_on_screen = not details and stage is None and file is None and not quiet and not links
    is_on_screen = is_on_screen and os.environ.get("TERM") not in ("dumb", "unknown")
    usual = "tui" if is_on_screen and sys.stdout.isatty() and sys.stdin.isatty() else "text"
    file = None if file == "-" else file
    return Output(options.format or usual, file, bool(quiet), details, stage, links, given.get("around", 0))


def prepare_output(format: str) -> None:
    """Import what writes a report, which takes a while, and is not needed before there is one."""
    _, render = renderer(format, "report", "reports")
    if "console" in signature(render).parameters:
        import shardscope.inspector.render.safe_console  # noqa: F401


def write_report(report: Report, output: Output, begun: Report | None = None) -> ExitCode:
    """Write a report, and return how its capture went; `begun` is what `write_beginning` wrote of it."""
    kind, render = renderer(output.format, "report", "reports")
    write_rendered(render, report if kind == "report" else (report,), output, begun=begun)
    return _told(report.capture, output)


def write_beginning(report: Report, output: Output) -> None:
    """Write of a text report what is known while the function still runs."""
    from shardscope.inspector.render.text import print_beginning

    write_rendered(print_beginning, report, output)


def write_comparison(comparison: Comparison, output: Output) -> ExitCode:
    """Write reports of several targets side by side, and return how the captures went: as the worst of them did."""
    kind, render = renderer(output.format, "comparison", "reports")
    write_rendered(render, comparison if kind == "comparison" else comparison.reports, output)
    return max(_told(report.capture, output) for report in comparison.reports)


def _told(capture: Capture, output: Output) -> ExitCode:
    """Return how a capture went; in words too, where the report that has them is in a file, or nowhere."""
    return after_screen(capture) if output.quiet or output.file is not None else exit_code(capture)


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


def write_rendered(render: Callable[..., Any], subject: object, output: Output, **given: object) -> None:
    """Write what a renderer makes of a subject; text in the terminal's colours, or plain in a file or a pipe."""
    if output.quiet and output.file is None:
        return
    taken = signature(render).parameters
    offered = {"version": __version__, "around": output.around, "details": output.details, **given}
    render_it = partial(render, subject, **{name: value for name, value in offered.items() if name in taken})
    if "console" not in taken:
        made = render_it()
        write_result(made.encode() if isinstance(made, str) else made, output)
        return
    from io import StringIO

    from shardscope.inspector.render.safe_console import SafeConsole

    if output.file is None and sys.stdout.isatty():
        render_it(console=SafeConsole(highlight=False))
        return
    text = StringIO()
    render_it(console=SafeConsole(file=text, width=PIPED_WIDTH, highlight=False))
    lines = "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())
    write_result(without_commands(lines).encode(), output)


def write_extract(capture: Capture, output: Output) -> ExitCode:
    """Write the text of a stage, or the links, in place of a report, and return how its capture went.

    Raises:
        CaptureError: the capture ended well, and does not have it, or no such format does.
    """
    from shardscope.inspector.ir.program import Program

    program = Program(capture)
    if output.links:
        if output.format not in formats("links"):
            raise CaptureError(f"--links has the formats {', '.join(formats('links'))}")
        from shardscope.inspector.pipeline import links

        write_rendered(renderer(output.format, "links")[1], links(program), output)
        return after_screen(capture)
    stage = program.stage(output.stage or "")
    if stage is not None:
        write_rendered(lambda stage: without_commands(stage.text.text()), stage, output)
    elif capture.failure is None:
        recorded = ", ".join(each.name for each in program.stages) or "none"
        raise CaptureError(f"there is no stage {output.stage} in this capture; recorded: {recorded}")
    return after_screen(capture)


def write_result(data: bytes, output: Output) -> None:
    """Write to a file, or to standard output, which also gets what a file turns out not to take."""
    if output.file is None:
        if not output.quiet:
            write(data)
        return
    try:
        with written(output.file) as file:
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


def add_try_option(parser: argparse.ArgumentParser, help: str, default: int | None = None) -> None:
    """`--try`."""
    reader = whole(0, MAX_TRIAL_S)
    parser.add_argument("--try", dest="try_for", type=reader, default=default, metavar="SECONDS", help=help)


def add_trial_options(parser: argparse.ArgumentParser) -> None:
    """`--try` and `--verify`."""
    add_try_option(
        parser,
        "try changes for so long: each is made in a copy of the source, compiled and compared; 0 for none"
        " (default: as long as the script and its compilation took, at least 2 and at most 20); a script that fails is"
        " run again with edits, unless this is 0",
    )
    parser.add_argument("--verify", action="store_true", help="try all changes, however long it takes")
