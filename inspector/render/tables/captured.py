"""The tables of what was captured: arguments and outputs, what went wrong, stages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from ....parsers.errors import Problem
from ...capture.model import PHASES, Failure, Message, Value
from ...ir.types import is_sharded_type
from ...report import PlacedMessage, Report
from ...units import format_bytes, format_seconds, plural
from ..table import Cell, Column, Detail, Piece, Role, Row, Table, titled


def arguments(report: Report) -> Table:
    """Each by its path, with its type and the requested sharding."""
    capture = report.capture
    sides = {"in": capture.arguments, "out": capture.outputs}
    rows = [_row(side, value) for side, values in sides.items() for value in values]
    return Table(
        id="values",
        title="In/out",
        key="5",
        columns=(
            Column("", 3, 1),
            Column("value", 10, 5),
            Column("type", 10, 4),
            Column("sharding", 20, 5),
        ),
        rows=tuple(rows),
        heading="Arguments and outputs" if rows else "",
        empty_text="Not recorded in a dump." if capture.subject is None else "The function has none.",
        most=40,
        unit="value",
        early=True,
    )


def unrequested(value: Value) -> str:
    """The words for a value without a requested sharding: on an explicit mesh its type may have one."""
    return "by its type" if is_sharded_type(value.type) else "unconstrained"


def _row(side: str, value: Value) -> Row:
    spec = Piece(value.spec) if value.spec else Piece(unrequested(value), "aside")
    sharding = [spec]
    if value.layout is not None:
        sharding.append(Piece(f", layout {value.layout}"))
    if value.donated:
        sharding.append(Piece(", donated", "warning"))
    return Row((Piece(side, "aside"), value.path, value.type, tuple(sharding)), value)


LEVELS: dict[str, Role] = {"error": "error", "warning": "warning", "info": "aside"}

MAX_LINE = 300
"""Characters of an entry's first line."""

Entry = Failure | PlacedMessage | Problem

MAX_CHARACTERS = 20_000
"""Characters of one entry."""


def problems(report: Report) -> Table:
    """The first line of each, worst first."""
    found = list(_entries(report))
    return Table(
        id="problems",
        title="Messages",
        key="9",
        columns=(Column("", 7, 3), Column("what", 20, 4), Column("where", 8, 2), Column("while", 6, 1)),
        rows=tuple(Row(_cells(entry), entry, isinstance(entry, Failure)) for entry in found),
        heading="Messages" if any(not isinstance(entry, Failure) for entry in found) else "",
        empty_text="No messages.",
        most=40,
        unit="message",
        details=_details,
        early=True,
        in_full=True,
    )


MAX_WORST = 4
"""Messages, and places that could not be read, in the overview."""


def worst_problems(report: Report) -> Table:
    """Errors and warnings alone, without the failure, which the overview begins with, and what findings quote."""
    table = problems(report)
    quoted = [text.rstrip("…") for each in report.findings for label, text in each.evidence if label == "compiler"]
    rows = tuple(
        row for row in table.rows if not row.minor and not _is_note(row.value) and not _is_one_of(row.value, quoted)
    )
    return replace(table, rows=rows, heading=table.heading if rows else "", most=MAX_WORST)


def _is_one_of(entry: object, quoted: Sequence[str]) -> bool:
    return isinstance(entry, PlacedMessage) and entry.message.text.startswith(tuple(quoted))


def _is_note(entry: object) -> bool:
    return isinstance(entry, PlacedMessage) and entry.message.level == "info"


def _entries(report: Report) -> Sequence[Entry]:
    capture = report.capture
    found: list[Entry] = [] if capture.failure is None else [capture.failure]
    if capture.damage is not None:
        text = f"the file is damaged, what follows is missing: {capture.damage}"
        found.append(PlacedMessage(Message("error", text, "start")))
    messages: Sequence[PlacedMessage] = report.messages or [PlacedMessage(each) for each in capture.messages]
    by_level = sorted(messages, key=lambda placed: list(LEVELS).index(placed.message.level))
    return [*found, *by_level, *(problem for stage in report.program.stages for problem in stage.problems)]


def _cells(entry: Entry) -> tuple[Cell, ...]:
    level, where, phase = "error", "", "reading"
    match entry:
        case Failure():
            text, phase = entry.message, PHASES[entry.phase]
        case PlacedMessage(message=Message() as said):
            # What is said of a capture as a whole has the first phase.
            level, text, phase = said.level, said.text, "" if said.phase == "start" else PHASES[said.phase]
            where = entry.source.text() or said.location or ""
        case Problem():
            line, column = entry.source.position(entry.span.start)
            text, where = entry.message, f"{entry.source.name}:{line}:{column}"
    first = next(iter(text.strip().splitlines()), "")[:MAX_LINE]
    return Piece(level, LEVELS[level]), first, where, phase


def _details(value: object) -> Sequence[Detail]:
    match value:
        case Failure():
            return [
                Detail("hint", value.hint or ""),
                Detail("", value.details.strip("\n")[:MAX_CHARACTERS], is_code=True),
            ]
        case PlacedMessage(message=Message() as said):
            rest = said.text.strip()
            shown = (
                [] if "\n" not in rest and len(rest) <= MAX_LINE else [Detail("", rest[:MAX_CHARACTERS], is_code=True)]
            )
            return [Detail("about", value.about or ""), *shown]
        case Problem():
            return [Detail("", str(value)[:MAX_CHARACTERS], is_code=True)]
    return ()


def stages(report: Report) -> Table:
    """The stages that the capture reached."""
    rows = []
    for stage in report.on_demand.stage_summaries():
        seconds = format_seconds(stage.seconds) if stage.seconds is not None else ""
        kinds = ", ".join(plural(count, kind) for kind, count in stage.collective_counts.items())
        rows.append(Row((stage.name, f"{stage.instructions:,}", format_bytes(stage.bytes), seconds, kinds), stage))
    return Table(
        id="stages",
        title="Stages",
        columns=titled("stage", "instructions", "size", "time", "collectives", right=("instructions", "size", "time")),
        rows=tuple(rows),
        heading="Stages" if rows else "",
    )


def other_programs(report: Report) -> Table:
    """Each with the line that made JAX compile it, and its calls; the costliest first."""
    rows = tuple(
        Row(
            (
                each.name,
                "" if each.call is None else f"{os.path.basename(each.call.file)}:{each.call.line}",
                plural(each.calls, "call"),
                f"{format_bytes(each.bytes)} sent per device" if each.bytes else "no collectives",
            ),
            each,
        )
        for each in report.capture.others
    )
    return Table(
        id="programs",
        title="Programs",
        columns=(Column("program", 10, 3), Column("from", 10, 2), Column("calls", 6, 1), Column("per call", 10, 1)),
        rows=rows,
        heading="Other programs of the script" if rows else "",
        empty_text="",
        most=8,
        unit="program",
    )
