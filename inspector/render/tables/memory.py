"""The memory that running takes: the compiler's account, and what is alive when most is taken."""

from __future__ import annotations

from ...report import LiveValue, PeakMemory, Report
from ...units import format_bytes
from ..collective_rows import SHORT_PASS
from ..table import Column, Row, Table


def memory(report: Report) -> Table:
    """What is alive at the peak: values of one type from one line as one row."""
    account, peak = report.capture.memory, report.peak
    parts = (
        {}
        if account is None
        else {
            "arguments": account.arguments,
            "outputs": account.outputs,
            "temporaries": account.temporaries,
            "aliased": account.aliased,
            "code": account.code,
            "peak": account.peak,
        }
    )
    known = [f"{name} {format_bytes(size)}" for name, size in parts.items() if size]
    alike: dict[tuple[str, str, str, str], list[LiveValue]] = {}
    for value in peak.alive if peak is not None and account is not None else ():
        place = value.source.text(report.script) or value.op_name or value.name
        alike.setdefault((value.opcode, str(value.type or ""), SHORT_PASS[value.direction], place), []).append(value)
    ordered = sorted(alike.items(), key=lambda item: -sum(value.bytes for value in item[1]))
    return Table(
        id="memory",
        title="Memory",
        columns=(
            Column("alive at the peak", align="right"),
            Column(""),
            Column("type"),
            Column("pass"),
            Column("from"),
        ),
        rows=tuple(_row(key, values) for key, values in ordered),
        heading="" if account is None else f"Memory per device{_verdict(peak)}",
        above=() if account is None else (" · ".join(known) or "the compiler does not say",),
        most=12,
        unit="line",
    )


def _row(key: tuple[str, str, str, str], values: list[LiveValue]) -> Row:
    opcode, type, direction, place = key
    times = f"{len(values)}× " if len(values) > 1 else ""
    size = format_bytes(sum(value.bytes for value in values))
    return Row((size, f"{times}{opcode}", type, direction, place), tuple(values))


def _verdict(peak: PeakMemory | None) -> str:
    if peak is None or peak.capacity is None:
        return ""
    share = peak.bytes / peak.capacity
    percent = f"{share:.0%}" if share >= 0.01 else "under 1%"
    fits = "fits" if peak.fits else "DOES NOT FIT"
    return f": {fits}, {format_bytes(peak.bytes)} of {format_bytes(peak.capacity)} ({percent})"
