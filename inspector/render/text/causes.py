"""What the collectives that nobody wrote are doing there."""

from __future__ import annotations

from rich.console import RenderableType

from ...report import Collective, Report
from ...shardings.collective_causes import causes_of
from ..collective_rows import Row, rows_of
from ..why_lines import cause_line, remedy_line
from .pieces import data, left_out, section

MOST = 20
"""Rows of the table that are explained."""


def causes(report: Report) -> RenderableType | None:
    """For each row of inserted collectives, those that send most first, its cause and what would do without it."""
    listed = [c for c in report.collectives if c.stage == "hlo" and c.origin != "user"]
    told: dict[tuple[str, ...], list[Row]] = {}
    for row in rows_of(listed, report):
        lines = _lines(row.collectives[0], report)
        if lines:
            told.setdefault(lines, []).append(row)
    if not told:
        return None
    ordered = sorted(told.items(), key=lambda item: -sum(row.total_wire or 0 for row in item[1]))
    shown: list[RenderableType] = []
    for lines, rows in ordered[:MOST]:
        count = sum(row.count for row in rows)
        kinds = ", ".join(dict.fromkeys(f"{row.kind} {row.axes} {row.types}" for row in rows))
        shown.append(data(f"{f'{count}× ' if count > 1 else ''}{kinds}"))
        shown += [data(f"  {line}", "dim") for line in lines]
    return section("Why they are there", [*shown, *left_out(len(ordered) - MOST, "cause")])


def _lines(collective: Collective, report: Report) -> tuple[str, ...]:
    found = causes_of(report.capture, collective)
    lines = []
    for cause in found[:2]:
        lines += [cause_line(cause, report), remedy_line(cause, report)]
    if len(found) > 2:
        lines.append(f"and {len(found) - 2} more operations: several collectives were merged into one")
    return tuple(dict.fromkeys(filter(None, lines)))
