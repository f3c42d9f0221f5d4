"""Meshes and references to their axes, as Shardy and HLO texts spell them.

    sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[…]>      mesh['x'=2,'y'=4], device_ids=(…)      "x":(1)2

Source of the notions: Shardy, docs/sharding_representation.md; XLA, xla/hlo/ir/mesh_and_axis.h.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from operator import itemgetter

from ..expressions import compiled
from ..grammar import integers, several, unquote
from ..lalr import Actions
from ..record import Record

MAX_DEVICES = 1 << 20
"""More devices than this in one mesh or list of groups are taken for a broken text, not expanded."""


class AxisRef(Record, frozen=True):
    """A mesh axis, or a part of one: `sub = (pre_size, size)` splits it into pre_size × size × rest, major to minor."""

    name: str
    sub: tuple[int, int] | None = None

    def __str__(self) -> str:
        return self.name if self.sub is None else f"{self.name}:({self.sub[0]}){self.sub[1]}"

    @staticmethod
    def spelled(text: str) -> AxisRef:
        """The axis that `str` gives so."""
        part = _PART.fullmatch(text)
        return AxisRef(text) if part is None else AxisRef(part[1], (int(part[2]), int(part[3])))


_PART = compiled(r"(.*):\((\d{1,9})\)(\d{1,9})", re.DOTALL)


def join_axes(axes: Iterable[AxisRef]) -> str:
    """`x, y:(1)2`, as Shardy spells axes and parts of them."""
    return ", ".join(map(str, axes))


class MeshSyntax(Record, frozen=True):
    """A mesh: its axes with their sizes, major to minor, and the devices in row-major order of the axes.

    `device_ids` is None when the text gives none, which means 0, 1, 2, …; a maximal mesh is one device and no axes.
    Raises ValueError when sizes and device ids contradict each other.
    """

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if len({name for name, _ in self.axes}) < len(self.axes):
            raise ValueError("a mesh axis is named twice")
        if any(size < 1 for _, size in self.axes):
            raise ValueError("a mesh axis has no devices")
        if self.size > MAX_DEVICES:
            raise ValueError(f"a mesh of more than {MAX_DEVICES} devices")
        if self.device_ids is not None and len(self.device_ids) != self.size:
            raise ValueError(f"{len(self.device_ids)} device ids for a mesh of {self.size}")

    @property
    def size(self) -> int:
        """Number of devices that the axes span."""
        return math.prod(size for _, size in self.axes)

    def named(self, axes: Iterable[AxisRef]) -> tuple[AxisRef, ...]:
        """References to its axes, those by number (XLA reads `'1'` as the second axis) by name."""
        names = [name for name, _ in self.axes]
        numbers = {str(number): name for number, name in enumerate(names) if str(number) not in names}
        return tuple(AxisRef(numbers.get(axis.name, axis.name), axis.sub) for axis in axes)

    def axis_size(self, axis: AxisRef) -> int:
        """Return the number of devices along an axis or a part of one; raises ValueError if there is none."""
        sizes = dict(self.axes)
        if axis.name not in sizes:
            raise ValueError(f"the mesh has no axis {axis.name!r}")
        if axis.sub is None:
            return sizes[axis.name]
        pre_size, size = axis.sub
        if pre_size < 1 or size < 1 or sizes[axis.name] % (pre_size * size):
            raise ValueError(f"{axis} is no part of an axis of size {sizes[axis.name]}")
        return size

    def split(self, axes: Iterable[AxisRef]) -> tuple[tuple[AxisRef, int], ...]:
        """The axes of the mesh cut so that each of `axes` is one piece: pieces and sizes, major to minor.

        Raises ValueError if the mesh has no such axes or they overlap.
        """
        wanted = list(axes)
        for axis in wanted:
            self.axis_size(axis)
        pieces: list[tuple[AxisRef, int]] = []
        for name, size in self.axes:
            done = 1
            parts = [(axis.sub or (1, size), axis) for axis in wanted if axis.name == name]
            for (pre_size, part), axis in sorted(parts, key=itemgetter(0)):
                if pre_size % done:
                    raise ValueError(f"{axis} overlaps another part of the axis")
                if pre_size > done:
                    pieces.append((AxisRef(name, (done, pre_size // done)), pre_size // done))
                pieces.append((axis, part))
                done = pre_size * part
            if done < size:
                pieces.append((AxisRef(name, (done, size // done)), size // done))
        return tuple(pieces)


def transposed_iota(dims: Sequence[int], perm: Sequence[int]) -> tuple[int, ...]:
    """`arange(prod(dims)).reshape(dims).transpose(perm).flatten()`."""
    order = [0]
    for dim in perm:
        stride = math.prod(dims[dim + 1 :])
        order = [first + index * stride for first in order for index in range(dims[dim])]
    return tuple(order)


def _axis_ref(name: str, pre_size: int | None, size: int | None) -> AxisRef:
    return AxisRef(name, None if pre_size is None or size is None else (pre_size, size))


def iota_devices(dims: tuple[int, ...], perm: tuple[int, ...] | None) -> tuple[int, ...]:
    """The devices that `[dims]T(perm)` spells; raises ValueError when that is no permutation, or far too long."""
    if math.prod(dims) > MAX_DEVICES:
        raise ValueError(f"more than {MAX_DEVICES} device ids")
    perm = tuple(range(len(dims))) if perm is None else perm
    if sorted(perm) != list(range(len(dims))):
        raise ValueError(f"{perm} is no permutation of {len(dims)} dimensions")
    return transposed_iota(dims, perm)


MESH_ACTIONS: Actions = {
    "mesh": MeshSyntax,
    "maximal_mesh": lambda device: MeshSyntax((), (device,)),
    "mesh_axes": several,
    "mesh_axis": lambda name, size: (name, size),
    "iota_ids": iota_devices,
    "axes": several,
    "axis_ref": _axis_ref,
    "INT": int,
    "INTS": integers,
    "QUOTED": unquote,
}
"""Actions of the rules of `mesh.lark`, for the grammars that import them."""
