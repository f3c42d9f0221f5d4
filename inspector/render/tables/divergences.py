"""Values that are declared the same along an axis, and are not."""

from __future__ import annotations

from ...report import Divergence, Report
from ...units import plural
from ..table import Cell, Column, Piece, Row, Table

SAID_BY = {"type": "its type", "inferred": "our inference", "out_specs": "out_specs"}


def divergences(report: Report) -> Table:
    """The first of each, and how many follow from them."""
    first = [found for found in report.divergences if found.is_first]
    rest = len(report.divergences) - len(first)
    words = f"{plural(rest, 'more value')} {'follow' if rest > 1 else 'follows'} from these"
    return Table(
        id="divergences",
        title="Divergences",
        columns=(
            Column(""),
            Column("type"),
            Column("over"),
            Column("said by"),
            Column("devices"),
            Column("iteration"),
            Column("from"),
        ),
        rows=tuple(Row(_cells(found, report.script), found) for found in first),
        heading="Declared the same on all devices, but different" if first else "",
        notes=lambda: [Piece(words, "aside")] if rest else [],
        most=12,
        unit="value",
    )


def _cells(found: Divergence, script: str | None) -> tuple[Cell, ...]:
    return (
        f"{found.value} = {found.primitive}",
        found.type,
        Piece(found.axis, "axis"),
        SAID_BY[found.declared],
        " and ".join(map(str, found.devices)),
        ", ".join(map(str, found.iteration)),
        found.source.text(script),
    )
