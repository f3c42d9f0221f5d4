"""How long each collective took."""

from __future__ import annotations

from itertools import groupby

from rich.console import RenderableType

from ...capture.protocol.values import Timing
from ...report import Report, SourcePosition
from ...units import format_seconds
from .pieces import data, left_out, section, table

MOST = 12
"""Collectives that are listed."""

NUMBERS = ("runs", "shortest", "longest", "skew")


def times(report: Report) -> RenderableType | None:
    """The slowest first: the fastest device, the slowest, and how far apart they begin."""
    by_name = groupby(report.capture.collective_times, key=lambda timing: timing.name)
    measured = [list(timings) for _, timings in by_name]
    if not measured:
        return None
    measured.sort(key=lambda timings: -max(timing.seconds for timing in timings))
    sources = {collective.name: collective.source for collective in report.collectives if collective.stage == "hlo"}
    shown = table("", *NUMBERS, "latest", "from", right=NUMBERS)
    for timings in measured[:MOST]:
        source = sources.get(timings[0].name, SourcePosition())
        shown.add_row(*map(data, (*_cells(timings), source.text(report.script))))
    title = f"Measured times in {measured[0][0].runs} runs, a device's waiting for the others included"
    return section(title, [shown, *left_out(len(measured) - MOST, "collective")])


def _cells(timings: list[Timing]) -> tuple[str, ...]:
    seconds = [timing.seconds for timing in timings]
    latest = max(timings, key=lambda timing: timing.late)
    return (
        timings[0].name,
        str(timings[0].count),
        format_seconds(min(seconds)),
        format_seconds(max(seconds)),
        format_seconds(latest.late),
        f"device {latest.device}",
    )
