"""Which values vary over which mesh axes, where the axes entered and where they left."""

from __future__ import annotations

from ...report import Report, VariableVariance
from ...selection.selection import StagePlace, equation_offset
from ...units import plural
from ..table import Cell, Column, Piece, Row, Table, axes_cell


def variance(report: Report) -> Table:
    """Each value inside a shard_map; minor where nothing happens: no axis enters or leaves, and no type hides one."""
    happening = [value for value in report.variance if _happens(value)]
    inferred = any(value.inferred for value in report.variance)
    note = " (inferred, as the check is off)" if inferred else ""
    heading = f"Variance{note}: {plural(len(report.variance), 'value')}, {len(happening)} at which it changes"

    def selection(value: object) -> StagePlace | None:
        offset = equation_offset(report, value.equation) if isinstance(value, VariableVariance) else None
        return None if offset is None else StagePlace("jaxpr", offset)

    return Table(
        id="variance",
        title="Variance",
        key="v",
        columns=(
            Column("value", 12, 5),
            Column("type", 12, 6),
            Column("varies over", 7, 8),
            Column("left", 4, 4),
            Column("entered", 8, 1),
            Column("from", 8, 2),
        ),
        rows=tuple(Row(_cells(value, report.script), value, not _happens(value)) for value in report.variance),
        heading=heading if happening else "",
        empty_text=(
            "There is no jaxpr, which tells it."
            if report.capture.stage("jaxpr") is None
            else "No shard_map, in which values vary over axes."
        ),
        most=12,
        unit="value",
        selection=selection,
    )


def _happens(value: VariableVariance) -> bool:
    return bool(value.left or value.hidden or any(entry.equation == value.equation for entry in value.entered))


def _cells(value: VariableVariance, script: str | None) -> tuple[Cell, ...]:
    entered = dict.fromkeys(f"{e.axis} by {e.by} {e.source.text(script)}".rstrip() for e in value.entered)
    return (
        f"{value.value} = {value.primitive}",
        value.type,
        _over(value),
        axes_cell(value.left),
        "; ".join(entered),
        value.source.text(script),
    )


def _over(value: VariableVariance) -> tuple[Piece, ...]:
    """`x, y unreduced, z reduced but may differ over w`."""
    parts = [(axis, "") for axis in value.varying]
    parts += [(axis, " unreduced") for axis in value.unreduced] + [(axis, " reduced") for axis in value.reduced]
    told = [piece for axis, word in parts for piece in (Piece(", "), Piece(axis, "axis"), Piece(word))][1:]
    hidden = (Piece(" but may differ over ", "error"), *axes_cell(value.hidden)) if value.hidden else ()
    return (*(told or [Piece("none", "aside")]), *hidden)
