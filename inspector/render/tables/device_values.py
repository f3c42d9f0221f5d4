"""The tables of the values that devices held: each value, and what differs that should not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...capture.protocol.values import Probe
from ...report import Divergence, ProbedValue, Report
from ...report.elements import array_lines, coordinates_text
from ...units import grouped, plural, ranges_text
from ..table import Cell, Column, Detail, Piece, Row, Table, axes_cell, axis_piece, titled


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
        heading="Values on each device" if any(each.probe.path for each in report.probes) else "",
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
    """The values on devices, those with equal values together."""
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
    return list(grouped(((shard.digest, shard.part), number) for number, shard in enumerate(probe.shards)).values())


def devices_text(probe: Probe, numbers: Sequence[int], *, has_part: bool = True) -> str:
    """`devices 0–3 dp=0 [0:2, :]`: the coordinates that all of them have, and the part that the first one has."""
    shards = [probe.shards[number] for number in numbers]
    common = [
        (axis, coordinates[0])
        for axis, coordinates in zip(
            probe.axes, zip(*(shard.coordinates for shard in shards), strict=False), strict=False
        )
        if len(set(coordinates)) == 1
    ]
    where = coordinates_text(tuple(axis for axis, _ in common), tuple(place for _, place in common))
    part = f"[{shards[0].part}]" if has_part and shards[0].part else ""
    word = "device" if len(shards) == 1 else "devices"
    return " ".join(filter(None, (word, ranges_text([shard.device for shard in shards]), where, part)))


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
