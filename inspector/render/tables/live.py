"""What running gave: its times, and its outputs in numbers."""

from __future__ import annotations

from ...capture.model import OutputSummary
from ...report import Report
from ..run_times import run_times
from ..table import Column, Piece, Row, Table

LONGEST_VALUES = 60


def live(report: Report) -> Table:
    """The outputs of the run."""
    ran, numbers = report.capture.execution, ("min", "mean", "max")
    times = "" if ran is None else run_times(ran)
    made_up = ", on made-up inputs" if ran is not None and ran.seeded_inputs else ""
    return Table(
        id="live",
        title="Live",
        key="l",
        columns=(
            Column("output", 8, 9),
            Column("type", 8, 7),
            Column("sharding", 8, 3),
            *(Column(name, 8, 5, "right") for name in numbers),
            Column("not finite", 4, 8, "right"),
            Column("values", 12, 1),
        ),
        rows=() if ran is None else tuple(map(_row, ran.outputs)),
        heading="" if ran is None else f"Ran{': ' if times else ''}{times}{made_up}",
        empty_text=not_run(report),
        most=12,
        unit="output",
        early=True,
    )


def not_run(report: Report) -> str:
    """Why there is nothing of a run."""
    if report.capture.execution is not None:
        return ""
    return "A dump is not run." if report.capture.subject is None else "The program was not run."


def _row(output: OutputSummary) -> Row:
    values = " ".join((output.values or "").split())
    values = values if len(values) <= LONGEST_VALUES else f"{values[:LONGEST_VALUES]}…"
    numbers = (_number(output.minimum), _number(output.mean), _number(output.maximum))
    bad = Piece(_number(output.non_finite), "error" if output.non_finite else "aside")
    return Row((output.path, output.type, output.spec or "", *numbers, bad, values), output)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
