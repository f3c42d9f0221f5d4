"""The stages, and how long each took."""

from __future__ import annotations

from ...report import Report
from ...units import format_bytes, format_seconds
from ..table import Column, Row, Table


def stages(report: Report) -> Table:
    """Those that were reached."""
    rows = []
    for stage in report.stages:
        seconds = format_seconds(stage.seconds) if stage.seconds is not None else ""
        rows.append(Row((stage.name, f"{stage.instructions:,}", format_bytes(stage.bytes), seconds), stage))
    return Table(
        id="stages",
        title="Stages",
        columns=(Column("stage"), *(Column(name, align="right") for name in ("instructions", "size", "time"))),
        rows=tuple(rows),
        heading="Stages" if rows else "",
    )
