"""The tables of a live run: its outputs, measured times, values on each device, and what differs that should not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import median

from ...capture.model import Execution, OutputSummary
from ...capture.protocol.values import ROUNDINGS, Apart, Probe, Reference, Timing
from ...report import Divergence, ProbedValue, Report
from ...units import format_seconds, plural
from ...values.elements import array_lines, coordinates_text
from ..table import Cell, Column, Detail, Piece, Role, Row, Table, axes_cell, axis_piece, count_cell, time_cell, titled

MAX_VALUE_CHARACTERS = 60


def live(report: Report) -> Table:
    """The outputs of the run."""
    ran, numbers = report.capture.execution, ("min", "mean", "max")
    times = "" if ran is None else run_times(ran)
    made_up = ", on synthetic inputs" if ran is not None and ran.seeded_inputs else ""
    return Table(
        id="live",
        title="Run",
        key="8",
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
        details=_values,
        early=True,
    )


def _values(value: object) -> Sequence[Detail]:
    """The values of an output, as they print."""
    return [Detail("values", value.values, is_code=True)] if isinstance(value, OutputSummary) and value.values else ()


def not_run(report: Report) -> str:
    """Why there is nothing of a run."""
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


def run_times(execution: Execution) -> str:
    """`5 runs, median 1.8 ms`, or `once, in 1.8 ms`; empty where none was measured."""
    seconds = execution.seconds
    if len(seconds) > 1:
        return f"{len(seconds)} runs, median {format_seconds(median(seconds))}"
    return f"once, in {format_seconds(seconds[0])}" if seconds else ""


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
        heading=f"Measured times in {runs} runs, waiting for other devices included" if rows else "",
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


def devices(report: Report) -> Table:
    """Each value once, before and after its equation and in each iteration."""
    parting = {(found.equation, found.value) for found in report.divergences if found.is_first}
    return Table(
        id="devices",
        title="Values",
        columns=(
            Column("when", 6, 7),
            Column("primitive", 8, 6),
            Column("over", 4, 5),
            Column("iteration", 4, 4),
            Column("value", 4, 3),
            Column("type", 10, 2),
            Column("devices", 9, 8),
            Column("from", 8, 1),
        ),
        rows=tuple(
            Row(_value_cells(each, parting, report.script), each, minor=not each.probe.path) for each in report.probes
        ),
        heading="Values on each device" if report.probes else "",
        notes=lambda: _apart(report),
        most=40,
        unit="value",
        details=_held,
        in_full=True,
    )


HEIGHT, WIDTH = 2, 8
"""Rows and columns of an array that are shown."""

MAX_HELD = 8
"""Different values of one place that are shown."""


def _held(value: object) -> Sequence[Detail]:
    """What the devices hold, those with equal values together."""
    if not isinstance(value, ProbedValue):
        return ()
    probe = value.probe
    alike = alike_shards(probe)
    found = []
    for numbers in alike[:MAX_HELD]:
        lines = "\n".join(array_lines(probe, numbers[0], HEIGHT, WIDTH))
        found.append(Detail(devices_text(probe, numbers), lines))
    if len(alike) > MAX_HELD:
        found.append(Detail("", f"and {len(alike) - MAX_HELD} more values"))
    return found


def alike_shards(probe: Probe) -> list[list[int]]:
    """The numbers of the shards, those together that hold the same of the same part."""
    alike: dict[tuple[str, str], list[int]] = {}
    for number, shard in enumerate(probe.shards):
        alike.setdefault((shard.digest, shard.part), []).append(number)
    return list(alike.values())


def devices_text(probe: Probe, numbers: Sequence[int]) -> str:
    """`devices 0–3 dp=0 [0:2, :]`: the coordinates that all of them have."""
    shards = [probe.shards[number] for number in numbers]
    common = [
        (axis, coordinates[0])
        for axis, coordinates in zip(
            probe.axes, zip(*(shard.coordinates for shard in shards), strict=False), strict=False
        )
        if len(set(coordinates)) == 1
    ]
    where = coordinates_text(tuple(axis for axis, _ in common), tuple(place for _, place in common))
    part = f"[{shards[0].part}]" if shards[0].part else ""
    word = "device" if len(shards) == 1 else "devices"
    return " ".join(filter(None, (word, ranges_text([shard.device for shard in shards]), where, part)))


def ranges_text(numbers: Sequence[int]) -> str:
    """`0–3, 8`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs)


def _apart(report: Report) -> Iterable[Piece]:
    """A line where the program that was run for this communicates otherwise than the one that is shown."""
    probed = report.capture.probed
    if probed is not None and probed.shown != probed.probed:
        kinds = sorted({*probed.shown, *probed.probed})
        more = {kind: probed.probed.get(kind, 0) - probed.shown.get(kind, 0) for kind in kinds}
        words = ", ".join(f"{count:+} {kind}" for kind, count in more.items() if count)
        yield Piece(f"recorded in a program compiled with these values as results: {words}", "aside")


def _value_cells(value: ProbedValue, parting: set[tuple[str, str]], script: str | None) -> tuple[Cell, ...]:
    probe = value.probe
    different = len({shard.digest for shard in probe.shards})
    alike = "all equal" if different == 1 else f"{different} values"
    wrong = bool(probe.path) and (probe.path[-1], value.name) in parting
    return (
        probe.when,
        value.primitive,
        axes_cell(value.axes),
        ", ".join(map(str, probe.iteration)),
        value.name,
        str(value.type),
        Piece(alike, "error" if wrong else "aside" if different == 1 else ""),
        value.source.function_text(script),
    )


SAID_BY = {"type": "its type", "inferred": "inference", "out_specs": "out_specs"}


def divergences(report: Report) -> Table:
    """The first of each, and how many follow from them."""
    first = [found for found in report.divergences if found.is_first]
    rest = len(report.divergences) - len(first)
    words = f"{plural(rest, 'more value')} {'follow' if rest > 1 else 'follows'} from these"
    return Table(
        id="divergences",
        title="Divergences",
        columns=titled("", "type", "over", "said by", "devices", "iteration", "from"),
        rows=tuple(Row(_divergence_cells(found, report.script), found) for found in first),
        heading="Declared invariant, but values differ" if first else "",
        notes=lambda: [Piece(words, "aside")] if rest else [],
        most=12,
        unit="value",
    )


def _divergence_cells(found: Divergence, script: str | None) -> tuple[Cell, ...]:
    return (
        f"{found.value} = {found.primitive}",
        str(found.type),
        axis_piece(found.axis),
        SAID_BY[found.declared],
        " and ".join(map(str, found.devices)),
        ", ".join(map(str, found.iteration)),
        found.source.text(script),
    )


TITLE = "Against a run on one device"


def reference(report: Report) -> Table:
    """The first value that differs in program order, then the others, farthest off first; or that none does."""
    found = report.capture.reference
    differs = () if found is None or found.undefined is not None else found.differs
    values = {(v.probe.path, v.probe.when, v.probe.position): v for v in report.probes}
    ranked = [*differs[:1], *sorted(differs[1:], key=lambda apart: -apart.distance)]
    pairs = [(apart, values.get((apart.path, apart.when, apart.position))) for apart in ranked]
    return Table(
        id="reference",
        title="One device",
        columns=titled("", "", "when", "iteration", "device at", "off by", "from"),
        rows=tuple(
            Row(
                (Piece("▲ first", "error") if apart is ranked[0] else "", *_apart_cells(apart, value, report.script)),
                apart,
            )
            for apart, value in pairs
        ),
        heading="" if found is None else _heading(found),
        empty_text="" if found is None else _empty(found),
        most=8,
        unit="value",
    )


def _heading(found: Reference) -> str:
    if found.undefined is not None or not found.differs:
        return TITLE
    return (
        f"{TITLE}: {len(found.differs)} of {plural(found.compared, 'value')} differ, the farthest off after the first"
    )


def _empty(found: Reference) -> str:
    if found.undefined is not None:
        return f"not defined: {found.undefined}"
    return f"{plural(found.compared, 'value')} compared: equal up to rounding"


def _apart_cells(apart: Apart, value: ProbedValue | None, script: str | None) -> tuple[Cell, ...]:
    return (
        "" if value is None else f"{value.name} {value.primitive}".strip(),
        apart.when,
        ", ".join(map(str, apart.iteration)),
        ", ".join(map(str, apart.coordinates)),
        "far off" if apart.distance > 1e100 else f"{apart.distance / ROUNDINGS:.3g}× what rounding may do",
        "" if value is None else value.source.text(script),
    )
