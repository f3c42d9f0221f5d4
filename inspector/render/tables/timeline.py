"""The table of what a device does when, by the cost model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from ....parsers.hlo import Instruction
from ....parsers.record import Record
from ...report import Report
from ...report.cost import FunctionCost
from ...report.places import StagePlace
from ...report.spelled import axes_text, kind_text
from ...report.timeline import Activity, Timeline
from ...units import format_bytes, format_seconds, plural, with_more
from ..table import Cell, Column, Piece, Role, Row, Table, axes_cell, time_cell

WIDTH = 20
"""Columns of the bar."""

LEVELS = "▁▂▃▄▅▆▇█"

BRIEF = 1000
"""Documents leave out what takes less than this part of the step."""

EMPTY = "Not available: there are no figures for this device; compile for a target, as in --target tpu:v5p:2x2x2."


class Stretch(Record, frozen=True):
    """Activities without a transfer between them, or one transfer or loop, and the second that it begins at."""

    activities: tuple[Activity, ...]
    start: float
    depth: int

    @property
    def seconds(self) -> float:
        """Seconds from its beginning to its end."""
        return self.activities[-1].end - self.activities[0].start

    @property
    def exposed(self) -> float:
        """Seconds in which the device waits for it."""
        return sum(each.exposed for each in self.activities)


def timeline_table(report: Report) -> Table:
    """One step: computing, the transfers beside it, and what of these is exposed; of a loop its first round."""
    found = report.on_demand.timeline()
    stretches = () if found is None else tuple(_stretches(found.activities, 0.0, 0))
    return Table(
        id="timeline",
        title="Time line",
        key="i",
        columns=(
            Column("starts", 7, 8, align="right"),
            Column("takes", 7, 9, align="right"),
            Column("waits", 7, 7, align="right"),
            Column("", WIDTH, 5),
            Column("what", 16, 10),
            Column("axes", 5, 6),
            Column("from", 8, 3),
        ),
        rows=(*_memory(found), *(_row(each, found, report) for each in stretches)) if found is not None else (),
        heading=_heading(found, report.cost) if found is not None and stretches else "",
        empty_text=EMPTY if found is None else "The program takes no time.",
        most=60,
        selection=_selected,
    )


def _heading(found: Timeline, cost: FunctionCost | None) -> str:
    is_least = cost is not None and cost.at_least
    exposed = f"{format_seconds(found.exposed)} exposed" if found.exposed else "nothing exposed"
    # Bytes and operations may be known of what has no time of its own: then they bound the step.
    bound = max(found.total, 0.0 if cost is None else cost.total)
    total = f"{'at least ' if is_least else ''}{format_seconds(bound)}"
    known = f", {exposed}" if found.exposed or not is_least else ""
    return f"Time line of a step on {found.chip} (cost model): {total}{known}"


def _memory(found: Timeline) -> Sequence[Row]:
    """Live memory in each part of the step, as columns below the peak; none where it is not known."""
    if not found.peak or not found.total:
        return ()
    most = [0] * WIDTH
    ends = [*(moment for moment, _ in found.memory[1:]), found.total]
    for (start, size), end in zip(found.memory, ends, strict=True):
        first, last = (min(int(moment / found.total * WIDTH), WIDTH - 1) for moment in (start, end))
        for part in range(first, last + 1):
            most[part] = max(most[part], size)
    drawn = "".join(LEVELS[max(size * len(LEVELS) - 1, 0) // found.peak] for size in most)
    what = f"peak {format_bytes(found.peak)} of live values"
    return [Row(("", "", "", Piece(drawn, "aside"), what, "", ""), found.at_peak)]


def _stretches(activities: Sequence[Activity], entered: float, depth: int) -> Iterator[Stretch]:
    for is_plain, group in groupby(activities, key=_is_plain):
        if is_plain:
            these = tuple(group)
            computing = tuple(each for each in these if each.lane == "compute")
            if computing:
                yield Stretch(computing, entered + computing[0].start, depth)
            continue
        for each in group:
            yield Stretch((each,), entered + each.start, depth)
            yield from _stretches(each.inside, entered + each.start, depth + 1)


def _is_plain(activity: Activity) -> bool:
    """Return whether it alone keeps a device busy: a computation or a hidden copy, no loop with transfers."""
    if activity.lane == "links" or activity.exposed:
        return False
    return all(map(_is_plain, activity.inside))


def _row(stretch: Stretch, found: Timeline, report: Report) -> Row:
    first = stretch.activities[0]
    exposed = stretch.exposed
    cells: tuple[Cell, ...] = (
        time_cell(stretch.start),
        time_cell(stretch.seconds),
        time_cell(exposed, "warning") if exposed else "",
        _bar(stretch, found.total),
        ("  " * stretch.depth) + _what(stretch),
        axes_cell(first.collectives[0].axes or ()) if first.collectives else "",
        first.source.text(report.script) if len(stretch.activities) == 1 else "",
    )
    return Row(cells, stretch, minor=stretch.seconds * BRIEF < found.total)


def _what(stretch: Stretch) -> str:
    first = stretch.activities[0]
    if first.collectives:
        axes = "" if first.collectives[0].axes else f" {axes_text(first.collectives[0])}"
        return with_more(f"{kind_text(first.collectives[0])}{axes}", len(first.collectives))
    if first.lane == "copies":
        return "copy between memories"
    if len(stretch.activities) > 1:
        return f"compute ({plural(len(stretch.activities), 'instruction')})"
    if first.instruction.opcode == "while":
        return f"loop, {'?' if first.rounds is None else first.rounds} rounds"
    return f"compute ({first.instruction.name})"


def _bar(stretch: Stretch, total: float) -> Piece:
    scale = WIDTH / total if total else 0.0
    begin = min(int(stretch.start * scale), WIDTH - 1)
    length = max(1, round(stretch.seconds * scale))
    role: Role = "warning" if stretch.exposed else "good" if stretch.activities[0].lane == "compute" else "aside"
    return Piece(f"{' ' * begin}{'█' * length}{' ' * (WIDTH - begin - length)}", role)


def _selected(value: object) -> object:
    """The value that the screen selects: the collective of a transfer, or the instruction that begins then."""
    if isinstance(value, Stretch) and value.activities[0].collectives:
        return value.activities[0].collectives[0]
    instruction = value.activities[0].instruction if isinstance(value, Stretch) else value
    return StagePlace("hlo", instruction.span.start) if isinstance(instruction, Instruction) else None
