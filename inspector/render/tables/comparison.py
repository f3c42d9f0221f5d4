"""The tables of several targets side by side."""

from __future__ import annotations

from ...diff.targets import CauseRow, Comparison
from ...report import Report
from ...units import format_bytes, format_seconds
from ..collective_rows import SHORT_PASS, cause_text, total_wire
from ..table import Cell, Column, Piece, Row, Table


def collectives_by_cause(comparison: Comparison) -> Table:
    """What each target does for one cause, a line for each kind of collective."""
    return Table(
        id="by-cause",
        title="Collectives by cause",
        columns=(
            Column("from", 12, 5),
            Column("pass", 4, 3),
            Column("axes", 5, 8),
            *(Column(target, 12, 5) for target in comparison.targets),
        ),
        rows=tuple(Row(_cells(row), row) for row in comparison.rows),
        heading="Collectives in the compiled programs" + (", by what causes them" if comparison.rows else ""),
        empty_text="none: nothing is communicated",
    )


def _cells(row: CauseRow) -> tuple[Cell, ...]:
    cause = row.cause
    place = cause.source or Piece("combined, or not known", "aside")
    cells = ("\n".join(cause_text(cell)) if cell else Piece("–", "aside") for cell in row.cells)
    return (place, SHORT_PASS[cause.direction], cause.axes, *cells)


def targets(comparison: Comparison) -> Table:
    """Each target in one line of numbers."""
    titles = ("target", "collectives", "reduce-scatters", "each device sends", "est.", "bound by", "compile")
    pairs = zip(comparison.targets, comparison.reports, strict=True)
    return Table(
        id="targets",
        title="Targets",
        columns=tuple(map(Column, titles)),
        rows=tuple(Row(_totals(target, report), report) for target, report in pairs),
        heading="Targets",
    )


def _totals(target: str, report: Report) -> tuple[str, ...]:
    listed = [c for c in report.collectives if c.stage == "hlo"]
    scattered = sum(c.kind == "reduce-scatter" for c in listed)
    compiled, cost = report.capture.stage("hlo"), report.cost
    seconds = format_seconds(compiled.seconds) if compiled is not None else "not compiled"
    sent = format_bytes(total_wire(listed)) if compiled is not None else ""
    estimated = ("", "") if cost is None else (format_seconds(cost.total), cost.bound)
    return (target, str(len(listed)), str(scattered), sent, *estimated, seconds)
