"""The table of the values that differ from those of a run on one device."""

from __future__ import annotations

from ...capture.protocol.values import ROUNDINGS, Apart, Reference
from ...report import ProbedValue, Report
from ...units import plural
from ..table import Cell, Piece, Row, Table, titled

TITLE = "Against a run on one device"


def reference(report: Report) -> Table:
    """The first value that differs in program order, then the others, farthest off first; or that none does."""
    found = report.capture.reference
    differs = () if found is None or found.undefined is not None else found.differs
    values = {(v.probe.path, v.probe.when, v.probe.position): v for v in report.probes}
    ranked = [*differs[:1], *sorted(differs[1:], key=lambda apart: -apart.distance)]
    pairs = [(apart, values.get((apart.path, apart.when, apart.position))) for apart in ranked]
    return Table(
        id="reference",
        title="One device",
        columns=titled("", "", "when", "iteration", "device at", "off by", "from"),
        rows=tuple(
            Row(
                (Piece("▲ first", "error") if apart is ranked[0] else "", *_apart_cells(apart, value, report.script)),
                apart,
            )
            for apart, value in pairs
        ),
        heading="" if found is None else _heading(found),
        empty_text="" if found is None else _empty(found),
        most=8,
        unit="value",
    )


def _heading(found: Reference) -> str:
    if found.undefined is not None or not found.differs:
        return TITLE
    return f"{TITLE}: {len(found.differs)} of {plural(found.compared, 'value')} differ, largest after the first"


def _empty(found: Reference) -> str:
    if found.undefined is not None:
        return f"not defined: {found.undefined}"
    return f"{plural(found.compared, 'value')} compared: equal up to rounding"


def _apart_cells(apart: Apart, value: ProbedValue | None, script: str | None) -> tuple[Cell, ...]:
    return (
        "" if value is None else f"{value.name} {value.primitive}".strip(),
        apart.when,
        ", ".join(map(str, apart.iteration)),
        ", ".join(map(str, apart.coordinates)),
        "far off" if apart.distance > 1e100 else f"{apart.distance / ROUNDINGS:.3g}× the rounding tolerance",
        "" if value is None else value.source.text(script),
    )
