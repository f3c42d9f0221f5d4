"""What the collectives that nobody wrote are doing there, a paragraph for each cause."""

from __future__ import annotations

from rich.console import RenderableType

from ...report import Report
from ..table import plain_text
from ..tables.causes import causes as causes_table
from .pieces import data, left_out, section


def causes(report: Report) -> RenderableType | None:
    """Each with the collectives that it has."""
    table = causes_table(report)
    lines: list[RenderableType] = []
    for row in table.rows[: table.most]:
        lines.append(data(plain_text(row.cells[0])))
        lines += [data(f"  {detail.text}", "dim") for detail in table.details(row.value)]
    more = len(table.rows) - (table.most or 0)
    return section(table.heading, [*lines, *left_out(more, table.unit)]) if lines else None
