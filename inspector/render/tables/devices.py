"""The values that were looked at while the program ran, on each device."""

from __future__ import annotations

from ...report import ProbedValue, Report
from ...selection.selection import ProbePlace
from ..table import Cell, Column, Piece, Row, Table, axes_cell
from .live import not_run


def devices(report: Report) -> Table:
    """Each value once, before and after its equation and in each iteration."""
    parting = {(found.equation, found.value) for found in report.divergences if found.is_first}
    places = {id(value): number for number, value in enumerate(report.probes)}
    return Table(
        id="devices",
        title="Each device",
        key="e",
        columns=(
            Column("when", 6, 7),
            Column("primitive", 8, 6),
            Column("over", 4, 5),
            Column("iteration", 4, 4),
            Column("value", 4, 3),
            Column("type", 10, 2),
            Column("devices", 9, 8),
            Column("from", 8, 1),
        ),
        rows=tuple(Row(_cells(value, parting, report.script), value) for value in report.probes),
        heading="Values on each device" if report.probes else "",
        empty_text=not_run(report) or "No value was looked at on each device: --probe all looks at all of them.",
        most=200,
        unit="value",
        selection=lambda value: ProbePlace(places[id(value)]),
    )


def _cells(value: ProbedValue, parting: set[tuple[str, str]], script: str | None) -> tuple[Cell, ...]:
    probe = value.probe
    different = len({shard.digest for shard in probe.shards})
    alike = "all equal" if different == 1 else f"{different} values"
    wrong = bool(probe.path) and (probe.path[-1], value.name) in parting
    return (
        probe.when,
        value.primitive,
        axes_cell(value.axes),
        ", ".join(map(str, probe.iteration)),
        value.name,
        probe.type,
        Piece(alike, "error" if wrong else "aside" if different == 1 else ""),
        value.source.function_text(script),
    )
