"""The meshes of a capture, over the partition numbers that compiled programs use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...parsers.sharding_syntax.mesh import MeshSyntax
from ..capture.model import Device, Mesh, Subject
from .stage import ParsedStage


def meshes_of(subject: Subject | None, stages: Sequence[ParsedStage]) -> tuple[MeshSyntax, ...]:
    """The user's meshes, each once; for a capture made of bare texts, the meshes that the texts tell of.

    Those that the texts declare come first: a script may have several over the same devices.
    """
    if subject is None or not subject.meshes:
        return tuple(dict.fromkeys(_declared(stages))) or tuple(dict.fromkeys(_used(stages)))
    mapped = (_over_partitions(mesh, subject) for mesh in subject.meshes)
    found = dict.fromkeys(mesh for mesh in mapped if mesh is not None)
    if len(found) < 2:
        return tuple(found)
    used = {mesh.axes for mesh in _declared(stages)}
    return tuple(sorted(found, key=lambda mesh: mesh.axes not in used))


def partition_count(subject: Subject | None, stages: Sequence[ParsedStage], meshes: Iterable[MeshSyntax]) -> int:
    """How many partitions the program runs on; 1 where nothing says so."""
    if subject is not None and subject.device_assignment:
        return len(subject.device_assignment)
    for stage in reversed(stages):
        if stage.module is not None and stage.module.devices > 1:
            return stage.module.devices
    return max((mesh.size for mesh in meshes), default=1)


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
