"""Draws the devices of a mesh, and who of them communicates with whom.

    batch ↓  feats →       The last axis runs to the right, the one before it down; each combination of the
           0     1         coordinates along the others is a grid of its own. Devices of one group have one
     0     0 ━━━ 1         colour, and neighbours in a group are joined by a line; a transfer from one device
     1     2 ━━━ 3         to its neighbour is an arrow.

Of an axis that is too long for the space the first coordinates and the last one are drawn; a single axis is folded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise, product

from textual.content import Content

from ..inspector.ir.meshes import partitions_of
from ..inspector.report import Collective
from ..inspector.report.spelled import step_of
from ..parsers.record import Record
from ..parsers.sharding_syntax.mesh import MeshSyntax
from ..parsers.sharding_syntax.replica_groups import Groups
from .painted import axis_hue, data, hue


class Traffic(Record, frozen=True):
    """The group of each partition, and the (source, target) pairs of a permutation; of many groups only one `shown`."""

    groups: Groups
    group_of: Mapping[int, int]
    pairs: frozenset[tuple[int, int]] = frozenset()
    shown: int | None = None

    def hue(self, partition: int | None) -> str:
        """The colour of a partition's group; dim for one that is in none that is shown."""
        group = None if partition is None else self.group_of.get(partition)
        return "$aside" if group is None or self.shown not in (None, group) else hue(group)

    def across(self, one: int | None, other: int | None) -> str:
        return self._between(one, other, "━→←↔")

    def down(self, one: int | None, other: int | None) -> str:
        return self._between(one, other, "┃↓↑↕")

    def _between(self, one: int | None, other: int | None, signs: str) -> str:
        if one is None or other is None:
            return " "
        if self.pairs:
            there, back = (one, other) in self.pairs, (other, one) in self.pairs
            return f" {signs[1:]}"[there + 2 * back]
        group = self.group_of.get(one)
        if group is None or self.shown not in (None, group):
            return " "
        return signs[0] if group == self.group_of.get(other) else " "


def traffic_of(collective: Collective) -> Traffic:
    """The traffic of a collective. A permutation's groups are its chains: who receives, at last, from whom."""
    groups = collective.groups or _chains(collective.pairs)
    group_of = {partition: number for number, group in enumerate(groups) for partition in group}
    return Traffic(groups, group_of, frozenset(collective.pairs))


def _chains(pairs: Iterable[tuple[int, int]]) -> Groups:
    """The pairs, end to end; a ring ends with the partition that it began with."""
    targets = dict(pairs)
    starts = [source for source in targets if source not in targets.values()]
    chains = []
    while targets:
        chain = [starts.pop(0) if starts else min(targets)]
        while (target := targets.pop(chain[-1], None)) is not None:
            chain.append(target)
        chains.append(tuple(chain))
    return tuple(chains)


GAPS = (3, 2, 1)
"""Columns between two devices: as many as there is room for."""

MAX_GRIDS = 64

MAX_ROWS = 8
"""Maximum number of drawn rows of a long axis."""

Coordinates = Sequence[int | None]
"""Along one axis, those that are drawn; None for those that are left out."""


class Picture(Record, frozen=True):
    """A drawing, its columns and lines. `devices[p]` is the number of the device of partition p."""

    mesh: MeshSyntax
    traffic: Traffic
    devices: Sequence[int]
    axis_hues: Mapping[str, str]
    width: int
    height: int

    def device(self, partition: int) -> int:
        return self.devices[partition] if partition < len(self.devices) else partition


class Grid(Record, frozen=True):
    """The part of the mesh that is drawn as rows and columns, for some coordinates along the outer axes.

    `columns_in_all` is how many there are, drawn or not; a folded axis has no row coordinates but first positions.
    """

    picture: Picture
    outer: tuple[int, ...]
    rows: Coordinates
    columns: Coordinates
    rows_in_all: int
    columns_in_all: int
    gap: int
    height: int

    @property
    def digits(self) -> int:
        return len(str(max(self.picture.devices, default=0)))

    @property
    def label(self) -> int:
        return len(str(self._row_name(self.rows_in_all - 1))) + 2 if self.rows_in_all > 1 else 0

    @property
    def width(self) -> int:
        return self.label + len(self.columns) * (self.digits + self.gap) - self.gap

    def lines(self) -> Iterator[Content]:
        if self.outer:
            yield Content("  ").join(
                data(name, axis_hue(name, self.picture.axis_hues)) + Content(f" {at}")
                for (name, _), at in zip(self.picture.mesh.axes, self.outer, strict=False)
            )
        numbers = (" " * self.gap).join(
            f"{'⋯' if column is None else column:>{self.digits}}" for column in self.columns
        )
        yield Content.styled(" " * self.label + numbers, "$aside")
        rows = [self._partitions(row) for row in self.rows]
        joints = [self._joints(above, below) for above, below in pairwise(rows)]
        joined = any(joint.plain.strip() for joint in joints) and 2 * len(rows) + 1 <= self.height
        for number, (coordinate, row) in enumerate(zip(self.rows, rows, strict=True)):
            if joined and number:
                yield joints[number - 1]
            name = "⋮" if coordinate is None else str(self._row_name(coordinate))
            yield Content.assemble((f"{name:>{self.label - 2}}  " if self.label else "", "$aside"), *self._row(row))

    def _row_name(self, row: int) -> int:
        return row * self.columns_in_all if len(self.picture.mesh.axes) == 1 else row

    def _partitions(self, row: int | None) -> list[int | None]:
        position = 0
        for (_, size), index in zip(self.picture.mesh.axes, self.outer, strict=False):
            position = position * size + index
        first = (position * self.rows_in_all + (row or 0)) * self.columns_in_all
        order = partitions_of(self.picture.mesh)
        return [None if row is None or column is None else order[first + column] for column in self.columns]

    def _row(self, row: Sequence[int | None]) -> Iterator[tuple[str, str]]:
        traffic = self.picture.traffic
        for number, partition in enumerate(row):
            # Across coordinates that are left out, the line goes on to the next device that is drawn.
            before = next((known for known in reversed(row[:number]) if known is not None), None)
            after = next((known for known in row[number:] if known is not None), None)
            joint = traffic.across(before, after)
            fill = joint if joint == "━" else " "
            yield joint.center(self.gap, fill) if number else "", traffic.hue(before)
            name = "⋯" if partition is None else str(self.picture.device(partition))
            yield fill * (self.digits - len(name)) if number else " " * (self.digits - len(name)), traffic.hue(before)
            yield name, f"bold {traffic.hue(partition)}" if partition is not None else "$aside"

    def _joints(self, above: Sequence[int | None], below: Sequence[int | None]) -> Content:
        traffic = self.picture.traffic
        parts = (
            (traffic.down(one, other).rjust(self.digits).ljust(self.digits + self.gap), traffic.hue(one))
            for one, other in zip(above, below, strict=True)
        )
        return Content.assemble(" " * self.label, *parts)


def draw(picture: Picture) -> list[Content]:
    """The lines of the picture."""
    if not picture.mesh.axes:
        return []
    outer = picture.mesh.axes[:-2]
    count = math.prod(size for _, size in outer)
    grids = [_grid(picture, at, count) for at in islice(product(*(range(size) for _, size in outer)), MAX_GRIDS)]
    fitting = max(1, min(count, (picture.width + 3) // (grids[0].width + 3)))
    beside = next((number for number in range(fitting, fitting // 2, -1) if count % number == 0), fitting)
    lines = [_heading(picture)]
    for first in range(0, len(grids), beside):
        band = _side_by_side([list(grid.lines()) for grid in grids[first : first + beside]], grids[0].width + 3)
        if first and len(lines) + len(band) >= picture.height:
            return [*lines, Content.styled(f"… and {count - first:,} more of these", "$aside")]
        lines += [Content(""), *band] if first else band
    if len(grids) < count:
        lines.append(Content.styled(f"… and {count - len(grids):,} more of these", "$aside"))
    return lines


def _heading(picture: Picture) -> Content:
    axes = picture.mesh.axes[-2:]
    return Content("   ").join(
        data(f"{name} {arrow}", f"bold {axis_hue(name, picture.axis_hues)}")
        for (name, _), arrow in zip(axes, "↓→"[-len(axes) :], strict=True)
    )


def _grid(picture: Picture, outer: tuple[int, ...], count: int) -> Grid:
    axes = picture.mesh.axes
    rows, columns = (axes[-2][1], axes[-1][1]) if len(axes) > 1 else (1, axes[0][1])
    digits = len(str(max(picture.devices, default=0)))
    room = picture.width - len(str(rows)) - 2
    if len(axes) == 1 and not any(columns * (digits + gap) - gap <= picture.width for gap in GAPS):
        fitting = (side for side in range(room // (digits + GAPS[1]), 0, -1) if columns % side == 0)
        side = _side_of(picture.traffic.groups, columns) or next(fitting, columns)
        room = picture.width - len(str(columns - side)) - 2
        rows, columns = columns // side, side
    gap = next((gap for gap in GAPS if columns * (digits + gap) - gap <= room), 1)
    height = picture.height - 2 if count == 1 else max(5, picture.height // 2 - 2)
    return Grid(
        picture,
        outer,
        rows=_shortened(rows, max(3, height - 1), MAX_ROWS),
        columns=_shortened(columns, max(3, (room + gap) // (digits + gap)), columns),
        rows_in_all=rows,
        columns_in_all=columns,
        gap=gap,
        height=height,
    )


def _side_of(groups: Groups, size: int) -> int | None:
    """Return the length of rows in which each group is one row, or one column; None if there is no such length."""
    step = step_of(groups)
    side = len(groups[0]) if step == 1 and len(set(map(len, groups))) == 1 else step
    return side if side is not None and 1 < side < size and size % side == 0 else None


def _shortened(size: int, most: int, kept: int) -> Coordinates:
    """All coordinates if they are at most so many; else the first ones, a gap, and the last one, `kept` in all."""
    return range(size) if size <= most else [*range(min(most, kept) - 2), None, size - 1]


def _side_by_side(grids: Sequence[Sequence[Content]], width: int) -> list[Content]:
    return [
        Content("").join(line.pad_right(max(0, width - line.cell_length)) for line in lines).rstrip()
        for lines in zip(*grids, strict=True)
    ]
