"""What the collectives that nobody wrote are doing there."""

from __future__ import annotations

from collections.abc import Sequence

from ...report import Collective, Report
from ...shardings.collective_causes import causes_of
from ..collective_rows import CollectiveRow, rows_of
from ..table import Column, Detail, Row, Table
from ..why_lines import cause_line, remedy_line


def causes(report: Report) -> Table:
    """For each row of inserted collectives, those that send most first, its cause and what would do without it."""
    listed = [c for c in report.collectives if c.stage == "hlo" and c.origin != "user"]
    alike: dict[tuple[str, ...], list[CollectiveRow]] = {}
    for row in rows_of(listed, report):
        lines = _lines(row.collectives[0], report)
        if lines:
            alike.setdefault(lines, []).append(row)
    ordered = sorted(alike.items(), key=lambda item: -sum(row.total_wire or 0 for row in item[1]))
    return Table(
        id="causes",
        title="Why they are there",
        columns=(Column("collectives"), Column("because")),
        rows=tuple(Row((_what(rows), "\n".join(lines)), lines) for lines, rows in ordered),
        heading="Why they are there" if ordered else "",
        most=20,
        unit="cause",
        details=_details,
    )


def _details(lines: object) -> Sequence[Detail]:
    return [Detail("", line) for line in lines] if isinstance(lines, tuple) else ()


def _what(rows: Sequence[CollectiveRow]) -> str:
    count = sum(row.count for row in rows)
    kinds = ", ".join(dict.fromkeys(f"{row.kind} {row.axes} {row.types}" for row in rows))
    return f"{f'{count}× ' if count > 1 else ''}{kinds}"


def _lines(collective: Collective, report: Report) -> tuple[str, ...]:
    found = causes_of(report.program, collective)
    lines = []
    for cause in found[:2]:
        lines += [cause_line(cause, report), remedy_line(cause, report)]
    if len(found) > 2:
        lines.append(f"and {len(found) - 2} more operations: several collectives were merged into one")
    return tuple(dict.fromkeys(filter(None, lines)))
