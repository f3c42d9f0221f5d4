"""HLO's `sharding` attribute in all versions of its syntax.

    {replicated}                       {maximal device=0}            {devices=[4,1,2]<=[8] last_tile_dim_replicate}
    {mesh['x'=2,'y'=4], [{'x'}, {}]}   {{replicated}, {manual}}

Source of the meanings: XLA, xla/hlo/ir/hlo_sharding.cc, named_sharding.cc and tile_assignment.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..grammar import Grammar, several
from ..record import Record
from .mesh import MESH_ACTIONS, AxisRef, MeshSyntax, iota_devices


class ShardGroup(Record, frozen=True):
    """Values of one `group` are sharded `as` each other (the same way) or `like` each other (compatibly)."""

    relation: str
    group: int


class UniformSharding(Record, frozen=True):
    """All devices alike: `kind` is `replicated`, `manual`, `unknown` or `unreduced`."""

    kind: str
    group: ShardGroup | None = None
    metadata: str | None = None


class MaximalSharding(Record, frozen=True):
    """All of the value on one device."""

    device: int
    group: ShardGroup | None = None
    metadata: str | None = None


class TiledSharding(Record, frozen=True):
    """The value cut into `tiles[i]` parts along dimension i; part n, row by row, lies on `devices[n]`.

    The last `len(subgroups)` entries of `tiles` are no dimensions of the value: along them its parts are what the
    subgroup says (`replicated`, `manual` or `unreduced`). Raises ValueError when tiles and devices do not fit.
    """

    tiles: tuple[int, ...]
    devices: tuple[int, ...]
    subgroups: tuple[str, ...] = ()
    group: ShardGroup | None = None
    metadata: str | None = None

    def __post_init__(self) -> None:
        if math.prod(self.tiles) != len(self.devices):
            raise ValueError(f"{len(self.devices)} devices for {list(self.tiles)} tiles")
        if len(self.subgroups) > len(self.tiles):
            raise ValueError(f"{len(self.subgroups)} subgroups in {len(self.tiles)} dimensions")

    @property
    def dims(self) -> tuple[int, ...]:
        """Number of parts of each dimension."""
        return self.tiles[: len(self.tiles) - len(self.subgroups)]


class DimSharding(Record, frozen=True):
    """The mesh axes that one dimension is cut along, major to minor; an open one may be cut further."""

    axes: tuple[AxisRef, ...]
    is_open: bool = False


class MeshSharding(Record, frozen=True):
    """A value on a mesh, dimension by dimension; `kind` stands instead of dimensions when all are alike.

    `unreduced_kind` names the reduction that is still to be done (`max`, …) where it is not a sum. Raises ValueError
    when the mesh has no such axes or they overlap.
    """

    mesh: MeshSyntax
    dims: tuple[DimSharding, ...] = ()
    kind: str | None = None
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    manual: tuple[AxisRef, ...] = ()
    unreduced_kind: str | None = None
    metadata: str | None = None

    def __post_init__(self) -> None:
        used = [axis for dim in self.dims for axis in dim.axes]
        self.mesh.split((*used, *self.replicated, *self.unreduced, *self.manual))


class TupleSharding(Record, frozen=True):
    """One sharding for each leaf of a tuple."""

    elements: tuple[Sharding, ...]


Sharding = UniformSharding | MaximalSharding | TiledSharding | MeshSharding | TupleSharding


# What may follow in any order comes as pairs of a field's name and its value.
_Field = tuple[str, Any]


_AXES_BY_KIND = {"replicated", "unreduced", "manual"}


def _dim(*entries: AxisRef | str) -> DimSharding:
    axes = tuple(entry for entry in entries if isinstance(entry, AxisRef))
    if "?" in entries[:-1]:
        raise ValueError("'?' stands last in a dimension")
    return DimSharding(axes, is_open=len(axes) < len(entries))


def _axes_of(kind: str, reduction: str | None, axes: tuple[AxisRef, ...]) -> tuple[_Field, ...]:
    if kind == "unknown":
        raise ValueError("of no axes it is unknown what becomes of them")
    return (kind, axes), ("unreduced_kind", reduction)


def _on_mesh(mesh: MeshSyntax, *fields: tuple[_Field, ...]) -> MeshSharding:
    found: dict[str, Any] = dict(field for each in fields for field in each if field[1] is not None)
    for kind in _AXES_BY_KIND & found.keys():
        found[kind] = mesh.named(found[kind])
    if "dims" in found:
        found["dims"] = tuple(DimSharding(mesh.named(dim.axes), dim.is_open) for dim in found["dims"])
    return MeshSharding(mesh, **found)


_GRAMMAR = Grammar(
    "gspmd",
    {
        **MESH_ACTIONS,
        "tuple": lambda *elements: TupleSharding(several(*elements)),
        "uniform": lambda kind, *fields: UniformSharding(kind, **dict(fields)),
        "maximal": lambda device, *fields: MaximalSharding(device, **dict(fields)),
        "tiled": lambda tiles, devices, *fields: TiledSharding(tiles, devices, **dict(fields)),
        "subgroups": lambda *kinds: ("subgroups", several(*kinds)),
        "replicated_rest": lambda: ("subgroups", ("replicated",)),
        "iota": iota_devices,
        "group": lambda relation, number: ("group", ShardGroup(relation, number)),
        "metadata": lambda text: ("metadata", text),
        "on_device": lambda mesh, field: MeshSharding(mesh, **dict([field] if field else [])),
        "on_mesh": _on_mesh,
        "also": lambda field: (field,),
        "whole": lambda kind, reduction: (("kind", kind), ("unreduced_kind", reduction)),
        "dims": lambda *dims: (("dims", several(*dims)),),
        "dim": lambda *entries: _dim(*several(*entries)),
        "axes_of": _axes_of,
        "RELATION": lambda text: text.removeprefix("shard_"),
    },
)

parse_sharding: Callable[[str], Sharding] = _GRAMMAR.reader()
"""The sharding that a text in braces spells; raises ParseError."""
