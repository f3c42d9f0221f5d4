"""Shardy's attributes of values and operations, as frozen values; shardings print as Shardy prints them.

Source of the notions: Shardy, docs/sharding_representation.md, docs/propagation.md and shardy/dialect/sdy/ir/attrs.td.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..record import Record
from ..sharding_syntax.mesh import AxisRef, MeshSyntax
from .lists import quote


class DimensionSharding(Record, frozen=True):
    """The mesh axes that one dimension is cut along, major to minor.

    An open one may be cut further by propagation. What has the lower priority is propagated first; None counts as 0.
    """

    axes: tuple[AxisRef, ...]
    is_open: bool = False
    priority: int | None = None

    def __str__(self) -> str:
        axes = [*map(_axis, self.axes), *(["?"] if self.is_open else [])]
        return f"{{{', '.join(axes)}}}{'' if self.priority is None else f'p{self.priority}'}"


class Sharding(Record, frozen=True):
    """The sharding of a value on a mesh, which is named or written out.

    Propagation must not cut it along `replicated` axes. Along `unreduced` ones each device has only its own part of a
    `reduction` (`sum`, `max` or `min`) that is still to be done.
    """

    mesh: str | MeshSyntax
    dims: tuple[DimensionSharding, ...]
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    reduction: str = "sum"

    def __str__(self) -> str:
        mesh = _symbol(self.mesh) if isinstance(self.mesh, str) else f"mesh{mesh_text(self.mesh)}"
        replicated = f", replicated={_axes(self.replicated)}" if self.replicated else ""
        reduction = "" if self.reduction == "sum" else self.reduction
        unreduced = f", unreduced={reduction}{_axes(self.unreduced)}" if self.unreduced else ""
        return f"<{mesh}, [{', '.join(map(str, self.dims))}]{replicated}{unreduced}>"


class Exchange(Record, frozen=True):
    """A part of an all-to-all: `axes` stop cutting dimension `source` and cut dimension `target` instead."""

    axes: tuple[AxisRef, ...]
    source: int
    target: int


class ShardingRule(Record, frozen=True):
    """A sharding rule: an operation's operands and results share factors in related dimensions.

    Each tensor is a tuple of dimensions, each dimension a tuple of factors, major to minor, by name (`i`, `z_1`).
    A factor without a kind passes through: operands and results are cut along it alike.
    """

    operands: tuple[tuple[tuple[str, ...], ...], ...]
    results: tuple[tuple[tuple[str, ...], ...], ...]
    sizes: tuple[tuple[str, int], ...] = ()
    reduction: tuple[str, ...] = ()
    need_replication: tuple[str, ...] = ()
    permutation: tuple[str, ...] = ()
    blocked_propagation: tuple[str, ...] = ()
    is_custom: bool = False


class Origin(Record, frozen=True):
    """The origin of an axis in a sharding.

    `kind` is `self`, `constraint`, `input` or `output`. The `name` is that of the constraint, or that of the manual
    computation if the input or output number `index` is one of those and not one of the function.
    """

    kind: str
    name: str | None = None
    index: int | None = None


Origins = tuple[tuple[AxisRef, Origin], ...]
"""Origin of each axis of one sharding."""


class ValueRef(Record, frozen=True):
    """An operation's operand or result (`kind`), by number."""

    kind: str
    index: int


class PropagationEdge(Record, frozen=True):
    """An axis went from one value of an operation to others."""

    axis: AxisRef
    source: ValueRef
    targets: tuple[ValueRef, ...]


class PropagationStep(Record, frozen=True):
    """The effect of one step of the propagation on an operation; steps are counted over the whole module."""

    index: int
    edges: tuple[PropagationEdge, ...]


def mesh_text(mesh: MeshSyntax) -> str:
    """The mesh as Shardy prints it: `<["x"=2, "y"=4], device_ids=[…]>`."""
    axes = ", ".join(f"{quote(name)}={size}" for name, size in mesh.axes)
    devices = "" if mesh.device_ids is None else f", device_ids=[{', '.join(map(str, mesh.device_ids))}]"
    return f"<[{axes}]{devices}>"


def _axis(axis: AxisRef) -> str:
    return quote(axis.name) if axis.sub is None else f"{quote(axis.name)}:({axis.sub[0]}){axis.sub[1]}"


def _axes(axes: Sequence[AxisRef]) -> str:
    return f"{{{', '.join(map(_axis, axes))}}}"


def _symbol(name: str) -> str:
    return f"@{name}" if re.fullmatch(r"[A-Za-z_][\w$.]*", name, re.ASCII) else f"@{quote(name)}"
