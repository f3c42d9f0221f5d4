"""How the values compare with those of a run on one device."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ...capture.protocol.values import Apart
from ...report import ProbedValue, Report
from ...units import plural
from .pieces import data, left_out, section, table

MOST = 8
"""Values that are listed."""


def reference(report: Report) -> RenderableType | None:
    """The first values that differ; or that none does."""
    found = report.capture.reference
    if found is None:
        return None
    title = "Against a run on one device"
    if found.undefined is not None:
        return section(title, [data(f"not defined: {found.undefined}")])
    compared = plural(found.compared, "value")
    if not found.differs:
        return section(title, [Text(f"{compared} compared: equal, but for rounding")])
    places = {(v.probe.path, v.probe.when, v.probe.position): v for v in report.probes}
    shown = table("", "when", "iteration", "device at", "off by", "from")
    for apart in found.differs[:MOST]:
        value = places.get((apart.path, apart.when, apart.position))
        shown.add_row(*map(data, _cells(apart, value, report.script)))
    first = f"{title}: {len(found.differs)} of {compared} differ, the first ones first"
    return section(first, [shown, *left_out(len(found.differs) - MOST, "value")])


def _cells(apart: Apart, value: ProbedValue | None, script: str | None) -> tuple[str, ...]:
    name = "" if value is None else f"{value.name} {value.primitive}".strip()
    return (
        name,
        apart.when,
        ", ".join(map(str, apart.iteration)),
        ", ".join(map(str, apart.coordinates)),
        "not even close" if apart.distance > 1e100 else f"{apart.distance:.3g} units in the last place",
        "" if value is None else value.source.text(script),
    )
