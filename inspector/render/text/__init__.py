"""The Report as one reads it in a terminal, or pastes it into an issue.

By default it fits a page: what was captured, what matters, what is communicated, and what is in order. `details` adds
sections in full.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ...report import Report
from ..finding_facts import notes_text
from ..overview import attention, in_order, nothing_sent
from ..table import Piece, Table
from ..tables import DETAILS
from ..tables.captured import problems
from ..tables.communication import communication
from ..tables.findings import matters
from ..tables.shardings import only_written, shardings
from .opening import explanation, failure, subject_lines
from .tables import data, table_section, text_of

MAX_PROBLEMS = 4
"""Messages, and places that could not be read, in the short report."""


def print_report(report: Report, console: Console, details: Collection[str] = ()) -> None:
    """Print the overview, and the sections that are named: keys of `DETAILS`, or `all`."""
    for line in subject_lines(report):
        console.print(line)
    if sent := nothing_sent(report):
        console.print(data(sent))
    is_short = bool(sent) and not details and not report.findings and report.capture.failure is None
    for part in _parts(report, tuple(DETAILS) if "all" in details else tuple(details)):
        if part is not None:
            if not is_short:
                console.print()
            console.print(part)


def _parts(report: Report, details: Collection[str]) -> Iterator[RenderableType | None]:
    yield failure(report, in_full="messages" in details)
    yield explanation(report)
    if "findings" not in details:
        yield table_section(matters(report))
    yield table_section(communication(report))
    if "messages" not in details:
        yield table_section(_worst(problems(report)))
    yield _state(report)
    if "shardings" not in details and only_written(report):
        yield table_section(shardings(report))
    for name in details:
        for table in DETAILS[name]:
            yield table_section(table(report))
    if not details and report.capture.failure is None:
        yield Text(f"more: -v, or --details {','.join(DETAILS)}", "dim")


def _worst(table: Table) -> Table:
    """Errors and warnings alone."""
    rows = tuple(row for row in table.rows if isinstance(row.cells[0], Piece) and row.cells[0].text != "info")
    return replace(
        table, rows=rows, heading=table.heading if any(not row.minor for row in rows) else "", most=MAX_PROBLEMS
    )


def _state(report: Report) -> RenderableType | None:
    """What is not in order, and what is."""
    lines = [text_of(cell) for cell in attention(report)]
    if order := in_order(report):
        lines.append(Text.assemble(("ok  ", "green"), data(order)))
    if notes := notes_text(report):
        lines.append(data(f"{notes}: --details findings", "dim"))
    return Group(*lines) if lines else None
