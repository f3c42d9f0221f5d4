"""Replica groups in every spelling XLA has printed, and as explicit lists of devices.

    {{0,1},{2,3}}            lists              [2,2]<=[2,2]T(1,0)       iota: reshape, transpose, reshape
    mesh['x'=2,'y'=2] {'y'}  mesh axes          {}                       one group of everything

Source of the meanings: XLA, xla/hlo/ir/replica_group.cc and tile_assignment.h. What the numbers count (replicas,
partitions or both) depends on the instruction, not on the groups.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence

from ..grammar import Grammar
from ..record import Record
from .mesh import MAX_DEVICES, MESH_ACTIONS, AxisRef, MeshSyntax, transposed_iota

Groups = tuple[tuple[int, ...], ...]
Pairs = tuple[tuple[int, int], ...]


class ListGroups(Record, frozen=True):
    """Groups written out, possibly of different sizes; no groups at all stand for one group of every device."""

    groups: Groups

    @property
    def members(self) -> Sequence[int]:
        """The devices of all groups, in any order."""
        return [device for group in self.groups for device in group]

    def devices(self, device_count: int) -> Groups:
        """The groups as lists of devices out of `device_count`; none where that is 0, for not known."""
        return self.groups or ((tuple(range(device_count)),) if device_count else ())


class IotaGroups(Record, frozen=True):
    """`count` groups of `size`, read row by row from `iota(dims)` transposed by `perm`.

    Raises ValueError when the shapes do not fit.
    """

    count: int
    size: int
    dims: tuple[int, ...]
    perm: tuple[int, ...]

    def __post_init__(self) -> None:
        if sorted(self.perm) != list(range(len(self.dims))):
            raise ValueError(f"{self.perm} is no permutation of {len(self.dims)} dimensions")
        if not 0 < self.count * self.size <= MAX_DEVICES or self.count * self.size != math.prod(self.dims):
            raise ValueError(f"{self.count} groups of {self.size} do not divide an iota of {list(self.dims)}")

    @property
    def members(self) -> Sequence[int]:
        """The devices of all groups, in any order."""
        return range(self.count * self.size)

    def devices(self, device_count: int) -> Groups:
        """The groups as lists of devices; the text alone says how many there are."""
        return _rows(transposed_iota(self.dims, self.perm), self.size)


class MeshGroups(Record, frozen=True):
    """The devices of a mesh in groups that differ along `axes` only, the last axis varying fastest.

    Without axes each device is a group of its own. Raises ValueError when the mesh has no such axes or they overlap.
    """

    mesh: MeshSyntax
    axes: tuple[AxisRef, ...]

    def __post_init__(self) -> None:
        self.mesh.split(self.axes)

    @property
    def members(self) -> Sequence[int]:
        """The devices of all groups, in any order."""
        return range(self.mesh.size) if self.mesh.device_ids is None else self.mesh.device_ids

    def devices(self, device_count: int) -> Groups:
        """The groups as lists of devices; the mesh alone says how many there are."""
        parts = self.mesh.split(self.axes)
        places = {axis: place for place, (axis, _) in enumerate(parts)}
        inner = [places[axis] for axis in self.axes]
        outer = [place for place in range(len(parts)) if place not in inner]
        order = transposed_iota([size for _, size in parts], outer + inner)
        if self.mesh.device_ids is not None:
            order = tuple(self.mesh.device_ids[position] for position in order)
        return _rows(order, math.prod(map(self.mesh.axis_size, self.axes)))


ReplicaGroups = ListGroups | IotaGroups | MeshGroups


def device_counts(replicas: str, partitions: str) -> set[int]:
    """Return the possible total sizes of groups: replicas, partitions, or both, from the header of a module.

    None where that is more than any program has: the numbers are as good as the file that they are in.
    """
    first, second = (int(each) if each.isdecimal() and len(each) < 8 else 1 for each in (replicas, partitions))
    return {first, second, first * second} if first * second <= MAX_DEVICES else set()


def fault_of(members: Sequence[int], counts: Collection[int]) -> str | None:
    """Return what is wrong with groups in a program with so many replicas, partitions, or both; None if nothing is.

    Every device is in one group (XLA, xla/service/hlo_verifier.cc, CheckReplicaGroups). No counts stand for any.
    """
    if len(set(members)) < len(members):
        return "name a device twice"
    if members and max(members) >= len(members):
        return f"leave out devices: there are {len(members)}, up to {max(members)}"
    if members and counts and len(members) not in counts:
        return f"have {len(members)} devices, and the module runs on {max(counts)}"
    return None


def _rows(order: tuple[int, ...], size: int) -> Groups:
    return tuple(order[first : first + size] for first in range(0, len(order), size))


def _lists(text: str) -> Groups:
    return tuple(map(tuple, json.loads(text.translate(_BRACKETS))))


def _pairs(rows: Groups) -> Pairs:
    if any(len(row) != 2 for row in rows):
        raise ValueError("a pair has a source and a target")
    return tuple((source, target) for source, target in rows)


def _iota(shape: tuple[int, ...], dims: tuple[int, ...], perm: tuple[int, ...] | None) -> IotaGroups:
    if len(shape) != 2:
        raise ValueError("iota groups have two dimensions: how many groups, and how many in each")
    return IotaGroups(*shape, dims, tuple(range(len(dims))) if perm is None else perm)


_BRACKETS = str.maketrans("{}", "[]")
_GRAMMAR = Grammar(
    "replica_groups",
    {
        **MESH_ACTIONS,
        "lists": ListGroups,
        "iota": _iota,
        "mesh_groups": lambda mesh, axes: MeshGroups(mesh, mesh.named(axes)),
        "pairs": _pairs,
        "LISTS": _lists,
    },
)

parse_replica_groups: Callable[[str], ReplicaGroups] = _GRAMMAR.reader("groups")
"""The groups that the value of a `replica_groups` attribute spells; raises ParseError."""
parse_pairs: Callable[[str], Pairs] = _GRAMMAR.reader("pairs")
"""The (source, target) pairs that the value of a `source_target_pairs` attribute spells; raises ParseError."""
parse_mesh: Callable[[str], MeshSyntax] = _GRAMMAR.reader("mesh")
"""The mesh that stands in front of groups, or in a sharding; raises ParseError."""
