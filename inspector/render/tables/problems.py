"""What went wrong, what the compiler said, and what could not be read."""

from __future__ import annotations

from collections.abc import Sequence

from ....parsers.errors import Problem
from ...capture.model import PHASES, Failure, Message
from ...report import PlacedMessage, Report
from ..table import Cell, Column, Detail, Piece, Role, Row, Table

LEVELS: dict[str, Role] = {"error": "error", "warning": "warning", "info": "aside"}

Entry = Failure | PlacedMessage | Problem

LONGEST = 20_000
"""Characters of one entry."""


def problems(report: Report) -> Table:
    """The first line of each, worst first."""
    found = list(_entries(report))
    return Table(
        id="problems",
        title="Problems",
        key="p",
        columns=(Column("", 7, 3), Column("what", 20, 4), Column("where", 8, 2), Column("while", 6, 1)),
        rows=tuple(Row(_cells(entry), entry) for entry in found),
        heading="Problems" if found else "",
        empty_text="No problems.",
        most=40,
        unit="problem",
        details=_details,
        early=True,
    )


def _entries(report: Report) -> Sequence[Entry]:
    capture = report.capture
    found: list[Entry] = [] if capture.failure is None else [capture.failure]
    if capture.damage is not None:
        text = f"the file is damaged, what follows is missing: {capture.damage}"
        found.append(PlacedMessage(Message("error", text, "start")))
    messages: Sequence[PlacedMessage] = report.messages or [PlacedMessage(each) for each in capture.messages]
    by_level = sorted(messages, key=lambda placed: list(LEVELS).index(placed.message.level))
    return [*found, *by_level, *(problem for stage in report.stages for problem in stage.problems)]


def _cells(entry: Entry) -> tuple[Cell, ...]:
    level, where, phase = "error", "", "reading"
    match entry:
        case Failure():
            text, phase = entry.message, PHASES[entry.phase]
        case PlacedMessage(message=Message() as said):
            level, text, phase = said.level, said.text, PHASES[said.phase]
            where = entry.source.text() or said.location or ""
        case Problem():
            line, column = entry.source.position(entry.span.start)
            text, where = entry.message, f"{entry.source.name}:{line}:{column}"
    first = next(iter(text.strip().splitlines()), "")[:300]
    return Piece(level, LEVELS[level]), first, where, phase


def _details(value: object) -> Sequence[Detail]:
    match value:
        case Failure():
            return [Detail("hint", value.hint or ""), Detail("", value.details.strip("\n")[:LONGEST], is_code=True)]
        case PlacedMessage(message=Message() as said):
            return [Detail("about", value.about or ""), Detail("", said.text[:LONGEST], is_code=True)]
        case Problem():
            return [Detail("", str(value)[:LONGEST], is_code=True)]
    return ()
