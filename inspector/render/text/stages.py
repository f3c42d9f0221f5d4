"""The stages, and how long each took."""

from __future__ import annotations

from rich.console import RenderableType

from ...report import Report
from ...units import format_bytes, format_seconds
from .pieces import data, section, table


def stages(report: Report) -> RenderableType | None:
    """A table of those that were reached."""
    if not report.stages:
        return None
    numbers = ("instructions", "size", "time")
    shown = table("stage", *numbers, right=numbers)
    for stage in report.stages:
        seconds = format_seconds(stage.seconds) if stage.seconds is not None else ""
        shown.add_row(data(stage.name), f"{stage.instructions:,}", format_bytes(stage.bytes), seconds)
    return section("Stages", [shown])
