"""What running gave, and the memory that it takes."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ...report import Report
from ...units import format_bytes
from ..run_times import run_times
from .pieces import data, left_out, section, table

MOST = 12
"""Outputs that are listed."""

LONGEST_VALUES = 60


def memory(report: Report) -> RenderableType | None:
    """One line of the compiler's account."""
    account = report.capture.memory
    if account is None:
        return None
    parts = {
        "arguments": account.arguments,
        "outputs": account.outputs,
        "temporaries": account.temporaries,
        "aliased": account.aliased,
        "code": account.code,
        "peak": account.peak,
    }
    known = [f"{name} {format_bytes(size)}" for name, size in parts.items() if size]
    return section("Memory per device", [Text(" · ".join(known) or "the compiler does not say")])


def execution(report: Report) -> RenderableType | None:
    """How long it ran, and its outputs in numbers."""
    ran = report.capture.execution
    if ran is None:
        return None
    shown = table("", "type", "sharding", "min", "mean", "max", "not finite", "values")
    for output in ran.outputs[:MOST]:
        numbers = (output.minimum, output.mean, output.maximum, output.non_finite)
        texts = (output.path, output.type, output.spec or "")
        values = " ".join((output.values or "").split())
        values = values if len(values) <= LONGEST_VALUES else f"{values[:LONGEST_VALUES]}…"
        shown.add_row(*map(data, texts), *map(_number, numbers), data(values))
    times = run_times(ran)
    title = f"Ran{': ' if times else ''}{times}{', on made-up inputs' if ran.seeded_inputs else ''}"
    return section(title, [shown, *left_out(len(ran.outputs) - MOST, "outputs")])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
