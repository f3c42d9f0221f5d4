"""How long each collective took."""

from __future__ import annotations

from itertools import groupby

from ...capture.protocol.values import Timing
from ...report import Report
from ...units import format_seconds
from ..table import Column, Row, Table


def times(report: Report) -> Table:
    """The slowest first: the fastest device, the slowest, and how far apart they begin."""
    by_name = groupby(report.capture.collective_times, key=lambda timing: timing.name)
    measured = [list(timings) for _, timings in by_name]
    measured.sort(key=lambda timings: -max(timing.seconds for timing in timings))
    compiled = {collective.name: collective for collective in report.collectives if collective.stage == "hlo"}
    rows = []
    for timings in measured:
        collective = compiled.get(timings[0].name)
        place = "" if collective is None else collective.source.text(report.script)
        rows.append(Row((*_cells(timings), place), collective))
    runs = measured[0][0].runs if measured else 0
    return Table(
        id="times",
        title="Measured times",
        columns=(
            Column(""),
            *(Column(name, align="right") for name in ("runs", "shortest", "longest", "skew")),
            Column("latest"),
            Column("from"),
        ),
        rows=tuple(rows),
        heading=f"Measured times in {runs} runs, a device's waiting for the others included" if rows else "",
        most=12,
        unit="collective",
    )


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
