"""How the commands that show a report do it: the options, and the one place that writes a result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.errors import CaptureError
from shardscope.inspector.capture.model import Capture, Failure
from shardscope.inspector.render.printable import printable
from shardscope.version import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from shardscope.inspector.compare import Comparison
    from shardscope.inspector.report import Report

FORMATS = ("tui", "text", "json", "markdown", "sarif", "github")

PIPED_WIDTH = 160
"""Columns of a text report that does not go to a terminal."""

FAILED: dict[str, ExitCode] = {
    "usage": ExitCode.USAGE,
    "function": ExitCode.FUNCTION_FAILED,
    "died": ExitCode.CAPTURE_DIED,
}


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """`--format` and `-o`."""
    parser.add_argument("--format", choices=FORMATS, help="what to show it as (default: tui on a terminal, else text)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the result to a file")


def chosen_format(options: argparse.Namespace) -> str:
    """What the options ask for: the screen, if there is one and nothing else is said."""
    if options.format is not None:
        return str(options.format)
    return "tui" if options.output is None and sys.stdout.isatty() and sys.stdin.isatty() else "text"


def write_report(report: Report, format: str, output: str | None) -> ExitCode:
    """Write a report, and tell how its capture went."""
    if format == "json":
        from shardscope.inspector.render.json import to_json

        write(to_json(report), output)
    elif format == "text":
        _write_report_text(report, output)
    else:
        write(_for_review((report,), format), output)
    return exit_code(report.capture)


def write_comparison(comparison: Comparison, format: str, output: str | None) -> ExitCode:
    """Write reports of several targets side by side, and tell how the captures went: as the worst of them did."""
    if format == "json":
        from shardscope.inspector.render.json.comparison import comparison_to_json

        write(comparison_to_json(comparison), output)
    elif format != "text":
        write(_for_review(comparison.reports, format), output)
    else:
        from shardscope.inspector.render.text.comparison import print_comparison

        write_text(lambda console: print_comparison(comparison, console), output)
    return max(exit_code(report.capture) for report in comparison.reports)


def _for_review(reports: Sequence[Report], format: str) -> bytes:
    """The formats of those who look at changes of code."""
    match format:
        case "sarif":
            from shardscope.inspector.render.sarif import to_sarif

            return to_sarif(reports, __version__)
        case "github":
            from shardscope.inspector.render.github import to_github

            return to_github(reports).encode()
    from shardscope.inspector.render.markdown import to_markdown

    return to_markdown(reports).encode()


def after_screen(capture: Capture) -> ExitCode:
    """Tell how a capture went whose report was on a screen that is gone; in words too, where it failed."""
    if capture.failure is not None:
        print(printable(f"shardscope: {capture.failure.message}"), file=sys.stderr)
    return exit_code(capture)


def exit_code(capture: Capture) -> ExitCode:
    """How a capture went."""
    match capture.failure:
        case Failure(kind=kind):
            return FAILED[kind]
        case None:
            return ExitCode.DONE if capture.damage is None else ExitCode.UNREADABLE_INPUT


def _write_report_text(report: Report, output: str | None) -> None:
    from shardscope.inspector.render.text import print_report

    write_text(lambda console: print_report(report, console), output)


def write_text(show: Callable[[Console], None], output: str | None) -> None:
    """Write what is shown on a console: to the terminal, else to a file or a pipe as plain text."""
    from io import StringIO

    from rich.console import Console

    if output is None and sys.stdout.isatty():
        show(Console(highlight=False))
        return
    text = StringIO()
    show(Console(file=text, width=PIPED_WIDTH, highlight=False))
    write("".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines()).encode(), output)


def write(data: bytes, output: str | None) -> None:
    """Write to a file, or to standard output."""
    if output is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        Path(output).write_bytes(data)
    except OSError as error:
        raise CaptureError(f"cannot write {output}: {error.strerror}") from error
