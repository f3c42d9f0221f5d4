"""The meshes of a capture, over the partition numbers that compiled programs use, and the axes that groups run over.

Compilers print groups of partition numbers; the axes' names are often lost or replaced. They are recovered here from
the groups alone: the members of a group that is formed by axes differ, in mesh coordinates, along exactly these axes.
`MeshSyntax.device_ids` are the partition numbers in row-major order of the axes, which are 0, 1, 2, … in a program that
was compiled for this mesh alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from ...parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from ...parsers.sharding_syntax.replica_groups import Groups, MeshGroups
from ..capture.model import ABSTRACT, Device, Mesh, Subject, key_of_axes
from .stage import ParsedStage


def meshes_of(subject: Subject | None, stages: Sequence[ParsedStage]) -> tuple[MeshSyntax, ...]:
    """The user's meshes, each once; for a capture made of bare texts, the meshes that the texts name.

    A script may have several, over the same devices: those that the texts of the program declare, where any does.
    """
    if subject is None or not subject.meshes:
        return tuple(dict.fromkeys(_declared(stages))) or tuple(dict.fromkeys(_used(stages)))
    mapped = (_over_partitions(mesh, subject) for mesh in subject.meshes)
    found = dict.fromkeys(mesh for mesh in mapped if mesh is not None)
    used = {mesh.axes for mesh in _declared(stages)} if len(found) > 1 else set()
    return tuple(mesh for mesh in found if mesh.axes in used) or tuple(found)


KeyedMeshes = tuple[tuple[str, MeshSyntax], ...]
"""Meshes over partition numbers, each with a key by which the capture's values name it."""


def keyed_meshes_of(subject: Subject | None) -> KeyedMeshes:
    """The meshes that values name. The key of a mesh without devices stands for all those with its axes."""
    if subject is None:
        return ()
    mapped = ((mesh, _over_partitions(mesh, subject)) for mesh in subject.meshes if mesh.key is not None)
    known = [(mesh, found) for mesh, found in mapped if found is not None]
    return (
        *((mesh.key or "", found) for mesh, found in known),
        *((key_of_axes((axis.name, axis.size) for axis in mesh.axes) + ABSTRACT, found) for mesh, found in known),
    )


def partition_count(subject: Subject | None, stages: Sequence[ParsedStage], meshes: Iterable[MeshSyntax]) -> int:
    """Return the number of partitions of the program; 0 where none is declared."""
    if subject is not None and subject.device_assignment:
        return len(subject.device_assignment)
    for stage in reversed(stages):
        if stage.module is not None and stage.module.devices > 1:
            return stage.module.devices
    return max((mesh.size for mesh in meshes), default=0)


def devices_of(subject: Subject | None) -> tuple[Device, ...]:
    """The device of each partition; none where they are fake."""
    if subject is None:
        return ()
    known = {device.id: device for device in subject.devices}
    order = subject.device_assignment or tuple(known)
    return tuple(known[number] for number in order) if all(number in known for number in order) else ()


def _over_partitions(mesh: Mesh, subject: Subject) -> MeshSyntax | None:
    """None for a mesh with devices that the program does not run on."""
    axes = tuple((axis.name, axis.size) for axis in mesh.axes)
    partition_of = {device: partition for partition, device in enumerate(subject.device_assignment or mesh.device_ids)}
    if any(device not in partition_of for device in mesh.device_ids):
        return None
    partitions = tuple(partition_of[device] for device in mesh.device_ids)
    try:
        return MeshSyntax(axes, None if partitions == tuple(range(len(partitions))) else partitions)
    except ValueError:
        return None


def _declared(stages: Iterable[ParsedStage]) -> Iterator[MeshSyntax]:
    for module in (stage.mlir for stage in stages):
        if module is not None:
            yield from (mesh for mesh in module.meshes.values() if mesh.axes)


def _used(stages: Iterable[ParsedStage]) -> Iterator[MeshSyntax]:
    """HLO declares no meshes, but has them where it uses them."""
    for module in (stage.hlo for stage in stages):
        if module is not None:
            yield from module.meshes


Coordinates = Mapping[int, tuple[int, ...]]


@lru_cache(maxsize=8)
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
