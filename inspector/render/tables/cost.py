"""The tables of what a run takes on the target, by the model and by the compiler: time and memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...capture.model import Memory
from ...report import Collective, LiveValue, PeakMemory, Report
from ...report.cost import Estimate, FunctionCost, Term
from ...report.spelled import axes_text, kind_text
from ...units import format_bytes, format_count, format_seconds
from ..collective_rows import SHORT_PASS
from ..table import Piece, Row, Table, titled

MAX_UNKNOWN = 2
"""Maximum number of unknown times that one line names."""


def term_text(term: Term) -> str:
    """`V = 512 B`, `t = 1 µs`."""
    match term.unit:
        case "s":
            value = format_seconds(term.value)
        case "B":
            value = format_bytes(round(term.value))
        case "B/s":
            value = f"{format_count(term.value)}B/s"
        case _:
            value = f"{term.value:.4g}"
    return f"{term.symbol} = {value}"


def cost(report: Report) -> Table:
    """The rooflines of the function, and each distinct formula with its numbers."""
    found = report.cost
    distinct: dict[tuple[str, str, Estimate], Collective] = {}
    for each in () if found is None else report.collectives:
        if each.stage == "hlo" and each.estimate is not None:
            distinct.setdefault((kind_text(each), axes_text(each), each.estimate), each)
    estimates = [estimate for _, _, estimate in distinct]
    return Table(
        id="cost",
        title="Cost",
        columns=titled("est.", "kind", "axes", "over", "formula", "with", right=("est.",)),
        rows=tuple(_formula_row(*key, collective) for key, collective in distinct.items()),
        heading="" if found is None else _heading(found),
        above=() if found is None else (roofline_line(found),),
        notes=lambda: [] if found is None or not estimates else _constants(found, estimates),
        most=12,
        unit="formula",
    )


def _heading(found: FunctionCost) -> str:
    least = "at least " if found.at_least else ""
    return f"Cost on {found.chip} (cost model): {least}{format_seconds(found.total)} per step{unknown_text(found)}"


def unknown_text(found: FunctionCost) -> str:
    """The reason why a time is a lower bound: ` (not known: the time of kernel.1)`."""
    if not found.unknown:
        return ""
    rest = len(found.unknown) - MAX_UNKNOWN
    return f" (not known: {', '.join(found.unknown[:MAX_UNKNOWN])}{f' and {rest} more' if rest > 0 else ''})"


def _formula_row(kind: str, axes: str, estimate: Estimate, value: object) -> Row:
    numbers = ", ".join(map(term_text, estimate.terms))
    return Row((format_seconds(estimate.seconds), kind, axes, estimate.link, estimate.formula, numbers), value)


def roofline_line(found: FunctionCost) -> str:
    """`compute 1.2 ms (550 GFLOP) · memory … · communication …, 2 µs exposed: bound by communication`."""
    return (
        f"compute {format_seconds(found.compute)} ({format_count(found.flops)}FLOP)"
        f" · memory {format_seconds(found.memory)} ({format_bytes(found.bytes)})"
        f" · communication {format_seconds(found.communication)}, {format_seconds(found.waiting)} exposed"
        f"{'' if found.at_least else f': bound by {found.bound}'}"
    )


def _constants(found: FunctionCost, estimates: Iterable[Estimate]) -> Iterable[Piece]:
    terms = {(term.symbol, term.meaning): term for estimate in estimates for term in estimate.terms if term.source}
    lines = [f"{term.symbol}: {term.meaning} ({term.source})" for term in terms.values()]
    lines += [f"{name} {format_count(figure.value)} per second ({figure.source})" for name, figure in found.figures]
    return [Piece(line, "aside") for line in lines]


def memory(report: Report) -> Table:
    """Live values at the peak: those of one type from one line as one row."""
    account, peak = report.capture.memory, report.peak
    alike: dict[tuple[str, str, str, str], list[LiveValue]] = {}
    alive = () if account is None else report.on_demand.alive_at_peak()
    for value in alive:
        place = value.source.text(report.script) or value.op_name or value.name
        where = " on the host" if value.on_host else " in VMEM" if value.in_vmem else ""
        type = f"{value.type or ''}{where}"
        alike.setdefault((value.opcode, type, SHORT_PASS[value.direction], place), []).append(value)
    ordered = sorted(alike.items(), key=lambda item: -sum(value.bytes for value in item[1]))
    return Table(
        id="memory",
        title="Memory",
        columns=titled("alive at the peak", "", "type", "pass", "from", right=("alive at the peak",)),
        rows=tuple(_memory_row(key, values) for key, values in ordered),
        heading="" if account is None else f"Memory per device{_verdict(peak)}",
        above=() if account is None else tuple(_account(account, alive, report)),
        empty_text="Not available: the program was not compiled here." if account is None else "",
        most=12,
        unit="line",
    )


def _account(account: Memory, alive: Sequence[LiveValue], report: Report) -> Iterator[str]:
    """The parts with their sum, the host's memory with copies there and back, and what the listed values add up to."""
    peak = report.peak
    parts = {
        "arguments": account.arguments,
        "outputs": account.outputs,
        "temporaries": account.temporaries,
        "code": account.code,
        "aliased": -(account.aliased or 0),
    }
    known = [f"{name} {format_bytes(size)}" for name, size in parts.items() if size]
    known += [] if peak is None or not peak.bytes else [f"total {format_bytes(peak.bytes)}"]
    known += [] if peak is None or peak.peak is None else [f"peak {format_bytes(peak.peak)}"]
    yield " · ".join(known) or "not reported by the compiler"
    if peak is None:
        return
    if peak.host:
        yield f"host memory {format_bytes(peak.host)}"
    for transfer in peak.transfers:
        runs = "" if transfer.executions == 1 else f" × {transfer.executions or '?'}"
        place = transfer.source.text(report.script) or transfer.name
        yield f"copied {transfer.direction}: {format_bytes(transfer.bytes)}{runs}, {transfer.type} ({place})"
    together = sum(value.bytes for value in alive if not value.elsewhere)
    if together > peak.bytes and all(value.type is not None for value in alive):
        yield f"the values alive at the peak are {format_bytes(together)} together: some share memory, or are constants"


def _memory_row(key: tuple[str, str, str, str], values: list[LiveValue]) -> Row:
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
