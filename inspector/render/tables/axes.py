"""The use of each mesh axis."""

from __future__ import annotations

from ...report import Report
from ...report.axes import AxisUse
from ..table import Column, Piece, Row, Table, size_cell


def axes(report: Report) -> Table:
    """A row for each axis: what is sharded over it, what runs over it, whether that fits; none without collectives."""
    has_problems = any(use.problem for use in report.axes)
    is_listed = any(use.shards or use.runs for use in report.axes) and bool(report.communication or report.uncounted)
    return Table(
        id="axes",
        title="Axes",
        columns=(
            Column("axis", 6, 6),
            Column("shards", 20, 10),
            Column("runs as", 20, 10),
            Column("bytes", 8, 8, "right"),
            *([Column("but", 20, 9)] if has_problems else []),
        ),
        rows=tuple(_row(use, has_problems) for use in report.axes) if is_listed else (),
        heading="Axes" if is_listed else "",
        most=8,
        unit="axis",
    )


def _row(use: AxisUse, has_problems: bool) -> Row:
    shards = ", ".join(part.what if part.share > 0.995 else f"{part.share:.0%} of {part.what}" for part in use.shards)
    runs = ", ".join(f"{run.strategy} ({f'{run.share:.0%}' if run.share >= 0.01 else '<1%'})" for run in use.runs)
    size = size_cell(use.bytes) if use.bytes else ""
    problem = [Piece(use.problem, "warning")] if has_problems else []
    return Row((Piece(f"{use.name}={use.size}", "strong"), shards or "nothing", runs or "nothing", size, *problem), use)
