"""The one sharding that every spelling is converted to: a mesh, and what its axes do to a value.

    sdy        #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>
    GSPMD      {devices=[4,1,2]<=[8] last_tile_dims={unreduced}}      {mesh['x'=4,'y'=2], [{'x'}, {}], unreduced={'y'}}
    JAX        P('x', None, unreduced={'y'})                           f32[8@x,16]{U:y}

Devices are partition numbers, as compiled programs count them. Spellings are compared by what they mean: see
`placement.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...parsers.mlir.sdy import DimensionSharding
from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from .meshes import partitions_of


class ArraySharding(Record, frozen=True):
    """The sharding of an array on a mesh: dimension i is partitioned over the axes `dims[i]`, major to minor.

    A part is `ceil(size / parts)` long, so the last ones may be shorter or empty. Along `unreduced` axes each device
    has its own part of a `reduction` still to be done; along `manual` ones a shard_map has one device's values. Along
    all others devices hold copies; `replicated` are those among them that propagation must leave so. A mesh without
    axes is a single device. Raises ValueError when the mesh has no such axes or they overlap.
    """

    mesh: MeshSyntax
    dims: tuple[DimensionSharding, ...]
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    manual: tuple[AxisRef, ...] = ()
    reduction: str = "sum"

    def __post_init__(self) -> None:
        self.mesh.split((*self.sharded, *self.replicated, *self.unreduced, *self.manual))

    @property
    def sharded(self) -> tuple[AxisRef, ...]:
        """The axes that cut some dimension, in the order of the dimensions."""
        return tuple(axis for dim in self.dims for axis in dim.axes)

    @property
    def parts(self) -> tuple[int, ...]:
        """Into how many parts each dimension is cut."""
        return tuple(self.size_along(dim.axes) for dim in self.dims)

    @property
    def copies(self) -> int:
        """Number of devices that hold the same elements."""
        used = (*self.sharded, *self.unreduced, *self.manual)
        return self.mesh.size // self.size_along(used)

    def size_along(self, axes: Iterable[AxisRef]) -> int:
        """Return the number of devices along some axes."""
        return math.prod(map(self.mesh.axis_size, axes))

    def local_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of a device's part of a global `shape`; raises ValueError when the ranks differ."""
        return tuple(-(-size // parts) for size, parts in zip(shape, self.parts, strict=True))

    def closed(self) -> ArraySharding:
        """Return the sharding after propagation: dimensions take no further axes and have no priorities."""
        return replace(self, dims=tuple(DimensionSharding(dim.axes) for dim in self.dims), replicated=())

    def __str__(self) -> str:
        """JAX's spelling. Parts of axes print as Shardy prints them, `x:(1)2`; a dimension that is open, with `…`.

        Priorities print as the Shardy guide proposes them, `P('x', 'y', priorities=(0, 1))`.
        """
        if not self.mesh.axes:
            return f"device {partitions_of(self.mesh)[0]}"
        entries = [_entry(dim) for dim in self.dims]
        if self.unreduced:
            kind = "" if self.reduction == "sum" else f"{self.reduction} "
            entries.append(f"unreduced={kind}{{{', '.join(repr(str(axis)) for axis in self.unreduced)}}}")
        priorities = tuple(dim.priority for dim in self.dims)
        if any(priority is not None for priority in priorities):
            entries.append(f"priorities={priorities}")
        return f"P({', '.join(entries)})"


def _entry(dim: DimensionSharding) -> str:
    names = [repr(str(axis)) for axis in dim.axes]
    if dim.is_open:
        names.append("…")
    if not names:
        return "None"
    if names == ["…"]:
        return "P.UNCONSTRAINED"
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def merged(axes: Iterable[AxisRef], mesh: MeshSyntax) -> tuple[AxisRef, ...]:
    """The same devices in the same order with as few axes as can be: `"x":(1)2, "x":(2)4` of 8 is `"x"`."""
    found: list[AxisRef] = []
    for axis in axes:
        size = mesh.axis_size(AxisRef(axis.name))
        pre, length = axis.sub or (1, size)
        if found and found[-1].name == axis.name:
            first, before = found[-1].sub or (1, size)
            if first * before == pre:
                found.pop()
                pre, length = first, before * length
        if length > 1:
            found.append(AxisRef(axis.name, None if length == size else (pre, length)))
    return tuple(found)
