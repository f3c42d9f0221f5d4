"""Several targets side by side."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from ...compare import CauseRow, Comparison
from ...units import format_bytes, format_seconds
from ..collective_rows import SHORT_PASS, cause_text, total_wire
from ..subject_line import subject_line
from .messages import failure
from .pieces import data, section, table


def print_comparison(comparison: Comparison, console: Console) -> None:
    """What was captured for each target, what went wrong, and the table."""
    for target, report in zip(comparison.targets, comparison.reports, strict=True):
        if (why := failure(report)) is None:
            console.print(subject_line(report))
        else:
            console.print(data(f"{target}:"))
            console.print(why)
    console.print()
    console.print(_collectives(comparison))
    console.print()
    console.print(_totals(comparison))


def _collectives(comparison: Comparison) -> RenderableType:
    if not comparison.rows:
        return section("Collectives in the compiled programs", [Text("none: nothing is communicated")])
    shown = table("from", "pass", "axes", *comparison.targets)
    for row in comparison.rows:
        cause = row.cause
        place = cause.source or "combined, or not known"
        shown.add_row(data(place), SHORT_PASS[cause.direction], data(cause.axes), *_cells(row))
    return section("Collectives in the compiled programs, by what causes them", [shown])


def _cells(row: CauseRow) -> Sequence[Text]:
    return [data("\n".join(cause_text(cell)) or "–", "" if cell else "dim") for cell in row.cells]


def _totals(comparison: Comparison) -> RenderableType:
    """Each target in one line of numbers."""
    shown = table("target", "collectives", "reduce-scatters", "each device sends", "est.", "bound by", "compile")
    for target, report in zip(comparison.targets, comparison.reports, strict=True):
        listed = [c for c in report.collectives if c.stage == "hlo"]
        scattered = sum(c.kind == "reduce-scatter" for c in listed)
        compiled = report.capture.stage("hlo")
        seconds = format_seconds(compiled.seconds) if compiled is not None else "not compiled"
        sent = format_bytes(total_wire(listed)) if compiled is not None else ""
        cost = report.cost
        estimated = ("", "") if cost is None else (format_seconds(cost.total), cost.bound)
        shown.add_row(data(target), str(len(listed)), str(scattered), sent, *estimated, seconds)
    return section("Targets", [shown])
