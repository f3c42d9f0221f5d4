"""The collectives of what runs; where it was not compiled, of what the user wrote."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ...report import Report
from ...units import format_bytes, format_seconds
from ..collective_rows import Row, rows_of
from .pieces import data, section, table

TITLES = {
    "hlo": "Collectives in the compiled program",
    "stablehlo": "Collectives in StableHLO, before partitioning",
}
"""The stages whose collectives are shown, the first that was reached."""


def collectives(report: Report) -> RenderableType | None:
    """A table of them, repeated ones once."""
    if not report.capture.stages:
        return None
    stage = next((stage for stage in TITLES if report.capture.stage(stage) is not None), None)
    if stage is None:
        return section("Collectives", [Text("not known: neither StableHLO nor the compiled program is here")])
    listed = [collective for collective in report.collectives if collective.stage == stage]
    if not listed:
        words = "none: nothing is communicated" if report.could_be_read(stage) else "none in what could be read"
        return section(TITLES[stage], [Text(words)])
    rows = rows_of(listed, report)
    estimated = any(each.estimate is not None for each in listed)
    columns = ["", "kind", "axes", "per device", "wire", "runs", *(["est."] if estimated else []), "by", "pass", "from"]
    shown = table(*columns, right=("wire", "runs", "est."))
    for row in rows:
        shown.add_row(*map(data, _cells(row, estimated)))
    total = sum(row.total_wire or 0 for row in rows)
    is_known = report.could_be_read(stage) and all(row.total_wire is not None for row in rows)
    at_least = "" if is_known else "at least "
    return section(f"{TITLES[stage]}: {len(listed)}, each device sends {at_least}{format_bytes(total)}", [shown])


def _cells(row: Row, estimated: bool) -> tuple[str, ...]:
    return (
        f"{row.count}×" if row.count > 1 else "",
        row.kind,
        row.axes,
        row.types,
        format_bytes(row.wire_bytes),
        row.executions,
        *([format_seconds(row.total_seconds)] if estimated else []),
        row.origin,
        row.direction,
        row.source,
    )
