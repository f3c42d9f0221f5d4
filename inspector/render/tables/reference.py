"""How the values compare with those of a run on one device."""

from __future__ import annotations

from ...capture.protocol.values import Apart, Reference
from ...report import ProbedValue, Report
from ...units import plural
from ..table import Cell, Column, Row, Table

TITLE = "Against a run on one device"


def reference(report: Report) -> Table:
    """The first values that differ; or that none does."""
    found = report.capture.reference
    differs = () if found is None or found.undefined is not None else found.differs
    values = {(v.probe.path, v.probe.when, v.probe.position): v for v in report.probes}
    pairs = [(apart, values.get((apart.path, apart.when, apart.position))) for apart in differs]
    return Table(
        id="reference",
        title="One device",
        columns=(
            Column(""),
            Column("when"),
            Column("iteration"),
            Column("device at"),
            Column("off by"),
            Column("from"),
        ),
        rows=tuple(Row(_cells(apart, value, report.script), apart) for apart, value in pairs),
        heading="" if found is None else _heading(found),
        empty_text="" if found is None else _empty(found),
        most=8,
        unit="value",
    )


def _heading(found: Reference) -> str:
    if found.undefined is not None or not found.differs:
        return TITLE
    return f"{TITLE}: {len(found.differs)} of {plural(found.compared, 'value')} differ, the first ones first"


def _empty(found: Reference) -> str:
    if found.undefined is not None:
        return f"not defined: {found.undefined}"
    return f"{plural(found.compared, 'value')} compared: equal, but for rounding"


def _cells(apart: Apart, value: ProbedValue | None, script: str | None) -> tuple[Cell, ...]:
    return (
        "" if value is None else f"{value.name} {value.primitive}".strip(),
        apart.when,
        ", ".join(map(str, apart.iteration)),
        ", ".join(map(str, apart.coordinates)),
        "not even close" if apart.distance > 1e100 else f"{apart.distance:.3g} units in the last place",
        "" if value is None else value.source.text(script),
    )
