"""The recorded values by iteration: the number of different ones on the devices, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...report import ProbedValue, Report
from ...report.elements import unequal_copies
from ...report.places import ProbePlace
from ...report.position import CallSites, call_sites, with_call_site
from ..table import Cell, Column, Piece, Role, Row, Table, axes_cell
from .execution import not_run
from .reference import Deviation, deviations

MAX_ITERATIONS = 16
"""Iterations that have a column; the details have the others."""

Site = tuple[tuple[str, ...], str, int]
"""The path of an equation, whether it is about an argument, an output or neither, and the number of the value."""

Iteration = tuple[int, ...]


def value_sites(report: Report) -> Table:
    """One row for each value of an equation, which only the screen lists; `▲` is where devices first differ."""
    sites: dict[Site, dict[Iteration, list[int]]] = {}
    for number, value in enumerate(report.probes):
        probe = value.probe
        side = probe.when if not probe.path else ""
        sites.setdefault((probe.path, side, probe.position), {}).setdefault(probe.iteration, []).append(number)
    iterations = sorted({iteration for found in sites.values() for iteration in found if iteration})
    shown = iterations[:MAX_ITERATIONS]
    wrong = {(d.equation, d.value, d.iteration): d.is_first for d in report.divergences}
    unequal = _unequal(report)
    called_at = call_sites(value.source for value in report.probes)
    apart = by_site(report)
    rows = tuple(_row(place, found, shown, report, wrong, unequal, called_at, apart) for place, found in sites.items())
    return Table(
        id="sites",
        title="Values",
        key="7",
        columns=(
            Column("", 1, 9),
            Column("value", 16, 8),
            Column("over", 4, 5),
            Column("values", 4, 7, align="right"),
            *(Column(",".join(map(str, each)), 5, 3, align="right") for each in shown),
            *([Column("off by", 8, 6, align="right")] if apart else []),
            Column("from", 10, 4),
        ),
        rows=rows,
        empty_text=_no_values(report),
        total=len(sites),
        selection=lambda number: ProbePlace(number) if isinstance(number, int) else None,
        first=next((number for number, row in enumerate(rows) if row.cells[0]), 0),
    )


def _no_values(report: Report) -> str:
    subject, why = report.capture.subject, not_run(report)
    if why and subject is not None and subject.target != "cpu":
        return f"{why} With --validate, its values are evaluated."
    return why or "No per-device values recorded; rerun with --probe all."


def by_site(report: Report) -> Mapping[Site, Deviation]:
    """The deviation of each site from a run on one device: of its operand or its result, whichever is larger."""
    found: dict[Site, Deviation] = {}
    for each in sorted(deviations(report), key=lambda each: (each.is_first, each.amount)):
        path, when, position = each.place
        found[path, "" if path else when, position] = each
    return found


def _row(
    place: Site,
    found: Mapping[Iteration, Sequence[int]],
    shown: Sequence[Iteration],
    report: Report,
    wrong: Mapping[tuple[str, str, Iteration], bool],
    unequal: Mapping[int, bool],
    called_at: CallSites,
    apart: Mapping[Site, Deviation],
) -> Row:
    marks = {iteration: _mark(numbers, report, wrong, unequal) for iteration, numbers in found.items()}
    first = next((iteration for iteration, is_first in marks.items() if is_first), None)
    bad = next((iteration for iteration, is_first in marks.items() if is_first is not None), None)
    chosen = first if first is not None else bad if bad is not None else next(iter(found))
    value = report.probes[found[chosen][-1]]
    sign: Cell = Piece("▲", "error") if first is not None else ""
    counts = [_count(found.get(iteration, ()), report, marks.get(iteration)) for iteration in ((), *shown)]
    source = with_call_site(called_at, value.source, value.source.function_text(report.script), report.script)
    off_by = [_off_by(apart.get(place))] if apart else []
    cells = (sign, value.label, axes_cell(value.axes), *counts, *off_by, source)
    return Row(cells, found[chosen][-1], minor=True)


def _off_by(deviation: Deviation | None) -> Cell:
    if deviation is None:
        return ""
    return Piece(f"{'first ' if deviation.is_first else ''}{deviation.times}", "error", amount=deviation.amount)


def _unequal(report: Report) -> Mapping[int, bool]:
    """The values of which copies differ, and whether that is the first difference: an argument's always is."""
    found = unequal_copies([value.probe for value in report.probes])
    is_argument = {number: report.probes[number].probe.when == "argument" for number in found}
    probed = {value.probe.path[-1] for value in report.probes if value.probe.path}
    is_known = any(each.equation in probed for each in report.divergences)
    first = next((number for number in found if not is_argument[number]), None)
    return {n: is_argument[n] or (n == first and not is_known and not any(is_argument.values())) for n in found}


def _mark(
    numbers: Sequence[int],
    report: Report,
    wrong: Mapping[tuple[str, str, Iteration], bool],
    unequal: Mapping[int, bool],
) -> bool | None:
    """Return whether devices first differ here without being allowed to; None where they may."""
    found = [wrong.get(_key(report.probes[number])) for number in numbers]
    found += [unequal.get(number) for number in numbers]
    return None if all(each is None for each in found) else any(found)


def _key(value: ProbedValue) -> tuple[str, str, Iteration]:
    probe = value.probe
    return (probe.path[-1] if probe.path else "", value.name, probe.iteration)


def _count(numbers: Sequence[int], report: Report, mark: bool | None) -> Piece:
    """`8→1`: different values before and after."""
    counts = [str(len({shard.digest for shard in report.probes[number].probe.shards})) for number in numbers]
    role: Role = "error" if mark is not None else "aside" if set(counts) <= {"1"} else ""
    return Piece("→".join(counts), role, amount=max(map(int, counts), default=None))


def neighbour(probes: Sequence[ProbedValue], number: int, direction: int) -> int | None:
    """The number of the same value in the iteration after, or before; None where there is none."""
    here = probes[number].probe
    alike = [
        other
        for other, value in enumerate(probes)
        if (value.probe.path, value.probe.when, value.probe.position) == (here.path, here.when, here.position)
    ]
    alike.sort(key=lambda other: probes[other].probe.iteration)
    there = alike.index(number) + direction
    return alike[there] if 0 <= there < len(alike) else None
