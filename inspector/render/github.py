"""Findings as workflow commands, which GitHub shows beside the lines of a pull request.

The format is that of the Actions runner: `::warning file=…,line=…,title=…::message`, one on a line, with `%`, line ends
and, in properties, `:` and `,` as percent codes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..report import Finding, Report, Severity
from .finding_facts import facts, failure_text
from .printable import printable

COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}


def to_github(reports: Sequence[Report]) -> str:
    """A command for each finding, worst first, for only the first few of a step are shown; and for what went wrong."""
    lines = [_failure(report) for report in reports if report.capture.failure is not None]
    found = [(found, report) for report in reports for found in report.findings]
    worst = list(COMMANDS)
    lines += [_finding(*each) for each in sorted(found, key=lambda each: worst.index(each[0].severity))]
    return "".join(f"{line}\n" for line in dict.fromkeys(lines))


def _finding(found: Finding, report: Report) -> str:
    frame = found.place.source.frame
    subject = report.capture.subject
    properties = [("title", f"{found.rule} {found.slug}")]
    if frame is not None:
        properties = [("file", relative(frame.file)), ("line", str(max(frame.line, 1))), *properties]
    elif subject is not None and subject.script is not None:
        properties = [("file", relative(subject.script)), ("line", "1"), *properties]
    message = "\n".join([found.message, *(f"{name}: {text}" for name, text in facts(found))])
    return command(COMMANDS[found.severity], properties, message)


def _failure(report: Report) -> str:
    failure = report.capture.failure
    assert failure is not None
    properties = [("title", "shardscope could not capture it")]
    if failure.stack:
        frame = failure.stack[0]
        properties = [("file", relative(frame.file)), ("line", str(max(frame.line, 1))), *properties]
    return command("error", properties, failure_text(report))


def command(name: str, properties: Iterable[tuple[str, str]], message: str) -> str:
    """One workflow command."""
    given = ",".join(f"{key}={_data(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties)
    return f"::{name} {given}::{_data(message)}"


def working_folder() -> Path:
    """The folder that one is in; the root, below which all is, where that is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


def relative(file: str) -> str:
    """The path from the folder that one is in, where it is in there; slashes whatever the system."""
    path = Path(os.path.normpath(file))
    here = working_folder()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


def _data(text: str) -> str:
    return printable(text.replace("\r\n", "\n")).replace("%", "%25").replace("\n", "%0A")
