"""Which mesh axes a set of device groups runs over.

Compilers print groups of partition numbers; the axes' names are often lost or replaced. They are recovered here from
the groups alone: the members of a group that is formed by axes differ, in mesh coordinates, along exactly these axes.

The meshes here are over partitions: `MeshSyntax.device_ids` are the partition numbers in row-major order of the axes,
which are 0, 1, 2, … in a program that was compiled for this mesh alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from ...parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from ...parsers.sharding_syntax.replica_groups import Groups, MeshGroups

Coordinates = Mapping[int, tuple[int, ...]]


@lru_cache(maxsize=64)
def coordinates_of(mesh: MeshSyntax) -> Coordinates:
    """Partition number → its coordinate along each axis of the mesh."""
    return {partition: _unravel(position, mesh) for position, partition in enumerate(partitions_of(mesh))}


def partitions_of(mesh: MeshSyntax) -> Sequence[int]:
    """The partition numbers in row-major order of the axes."""
    return range(mesh.size) if mesh.device_ids is None else mesh.device_ids


@lru_cache(maxsize=4096)
def axes_of_groups(groups: Groups, mesh: MeshSyntax) -> tuple[AxisRef, ...] | None:
    """The axes or sub-axes that form exactly these groups; None if none do.

    The order of groups and of members does not matter, only who talks to whom. Axes come in mesh order, the parts
    of a split axis from major to minor; groups of one member each are formed by no axes: the empty tuple.
    """
    coordinates = coordinates_of(mesh)
    wanted = frozenset(map(frozenset, groups))
    first = partitions_of(mesh)[0]
    group = next((group for group in groups if first in group), None)
    if group is None or not all(member in coordinates for member in group):
        return None
    axes: list[AxisRef] = []
    for index, (name, size) in enumerate(mesh.axes):
        # The first partition has coordinate 0 along every axis, so its group shows each axis's own offsets.
        parts = _stripes({coordinates[member][index] for member in group}, size)
        if parts is None:
            return None
        axes += (AxisRef(name, None if count == size else (size // (stride * count), count)) for stride, count in parts)
    formed = MeshGroups(mesh, tuple(axes)).devices(mesh.size)
    return tuple(axes) if frozenset(map(frozenset, formed)) == wanted else None


def axes_of_pairs(pairs: Iterable[tuple[int, int]], mesh: MeshSyntax) -> tuple[AxisRef, ...] | None:
    """The axes along which at least one (source, target) pair moves; None if a partition is not in the mesh."""
    coordinates = coordinates_of(mesh)
    moved = [False] * len(mesh.axes)
    for source, target in pairs:
        if source not in coordinates or target not in coordinates:
            return None
        for index, (here, there) in enumerate(zip(coordinates[source], coordinates[target], strict=True)):
            moved[index] |= here != there
    return tuple(AxisRef(name) for (name, _), moves in zip(mesh.axes, moved, strict=True) if moves)


def _unravel(position: int, mesh: MeshSyntax) -> tuple[int, ...]:
    coordinates = []
    for _, size in reversed(mesh.axes):
        position, coordinate = divmod(position, size)
        coordinates.append(coordinate)
    return tuple(reversed(coordinates))


def _stripes(offsets: set[int], size: int) -> list[tuple[int, int]] | None:
    """The parts of an axis of `size`, major to minor, whose sums are exactly `offsets`; None if there are none.

    A part is (stride, count) and contributes 0, stride, …, (count - 1) * stride: 0 1 4 5 of 8 is stride 4 twice and
    stride 1 twice.
    """
    parts: list[tuple[int, int]] = []
    sums = {0}
    while len(sums) < len(offsets):
        stride = min(offsets - sums)
        count = 1
        while all(total + count * stride in offsets for total in sums):
            count += 1
        if count == 1 or size % (stride * count):
            return None
        sums = {total + step * stride for total in sums for step in range(count)}
        parts.append((stride, count))
    return parts[::-1] if sums == offsets else None
