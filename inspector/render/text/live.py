"""What running gave, and the memory that it takes."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ...report import PeakMemory, Report
from ...units import format_bytes
from ..collective_rows import SHORT_PASS
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
    lines: list[RenderableType] = [Text(" · ".join(known) or "the compiler does not say")]
    peak = report.peak
    if peak is not None:
        lines += _alive(report, peak)
    return section(f"Memory per device{_verdict(peak)}", lines)


def _verdict(peak: PeakMemory | None) -> str:
    if peak is None or peak.capacity is None:
        return ""
    share = peak.bytes / peak.capacity
    percent = f"{share:.0%}" if share >= 0.01 else "under 1%"
    fits = "fits" if peak.fits else "DOES NOT FIT"
    return f": {fits}, {format_bytes(peak.bytes)} of {format_bytes(peak.capacity)} ({percent})"


def _alive(report: Report, peak: PeakMemory) -> list[RenderableType]:
    """What is alive at the peak: values of one type from one line as one row."""
    rows: dict[tuple[str, str, str, str], list[int]] = {}
    for value in peak.alive:
        place = value.source.text(report.script) or value.op_name or value.name
        key = (value.opcode, value.type, SHORT_PASS[value.direction], place)
        rows.setdefault(key, []).append(value.bytes)
    shown = table("alive at the peak", "", "type", "pass", "from", right=("alive at the peak",))
    ordered = sorted(rows.items(), key=lambda item: -sum(item[1]))
    for (opcode, type, direction, place), sizes in ordered[:MOST]:
        times = f"{len(sizes)}× " if len(sizes) > 1 else ""
        shown.add_row(format_bytes(sum(sizes)), *map(data, (f"{times}{opcode}", type, direction, place)))
    return [shown, *left_out(len(ordered) - MOST, "line")] if rows else []


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
    return section(title, [shown, *left_out(len(ran.outputs) - MOST, "output")])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
