"""The tables of a live run: its outputs, and measured times."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ...capture.model import OutputSummary
from ...capture.protocol.values import Timing
from ...report import Report
from ...units import plural
from ..table import Cell, Column, Detail, Piece, Role, Row, Table, count_cell, time_cell, titled

MAX_VALUE_CHARACTERS = 60


def live(report: Report) -> Table:
    """The outputs of the run."""
    ran, numbers = report.capture.execution, ("min", "mean", "max")
    made_up = " on synthetic inputs" if ran is not None and ran.seeded_inputs else ""
    return Table(
        id="live",
        title="Run",
        key="8",
        columns=(
            Column("output", 10, 9),
            Column("type", 12, 7),
            Column("sharding", 12, 6),
            *(Column(name, 8, 5, align="right") for name in numbers),
            Column("not finite", 4, 8, align="right"),
            Column("values", 12, 1),
        ),
        rows=() if ran is None else tuple(map(_row, ran.outputs)),
        heading="" if ran is None else f"Outputs of the run{made_up}",
        empty_text=not_run(report),
        most=12,
        unit="output",
        details=_values,
        early=True,
    )


def _values(value: object) -> Sequence[Detail]:
    return [Detail("values", value.values, is_code=True)] if isinstance(value, OutputSummary) and value.values else ()


def not_run(report: Report) -> str:
    """The reason why there is no result of a run."""
    if report.capture.execution is not None:
        return ""
    return "Dumps are not executed." if report.capture.subject is None else "The program was not executed."


def _row(output: OutputSummary) -> Row:
    values = " ".join((output.values or "").split())
    values = values if len(values) <= MAX_VALUE_CHARACTERS else f"{values[:MAX_VALUE_CHARACTERS]}…"
    numbers = (_number(output.minimum), _number(output.mean), _number(output.maximum))
    bad = _number(output.non_finite, "error" if output.non_finite else "aside")
    return Row((output.path, output.type, output.spec or "", *numbers, bad, values), output)


def _number(value: float | None, role: Role = "") -> Piece:
    return Piece("" if value is None else f"{value:.4g}", role, amount=value)


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
        rows.append(Row((*_time_cells(timings), place), collective))
    runs = measured[0][0].runs if measured else 0
    return Table(
        id="times",
        title="Measured times",
        columns=titled(
            "", "runs", "shortest", "longest", "skew", "latest", "from", right=("runs", "shortest", "longest", "skew")
        ),
        rows=tuple(rows),
        heading=f"Measured times in {plural(runs, 'run')}, waiting for other devices included" if rows else "",
        most=12,
        unit="collective",
    )


def _time_cells(timings: list[Timing]) -> tuple[Cell, ...]:
    seconds = [timing.seconds for timing in timings]
    latest = max(timings, key=lambda timing: timing.late)
    return (
        timings[0].name,
        count_cell(timings[0].count),
        time_cell(min(seconds)),
        time_cell(max(seconds)),
        time_cell(latest.late),
        f"device {latest.device}",
    )
