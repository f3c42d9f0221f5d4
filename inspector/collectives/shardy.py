"""Collectives of Shardy, whose types are global: groups and one device's parts, from axes and the result's sharding."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...parsers.errors import readable
from ...parsers.mlir import MlirModule, Operation
from ...parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from ...parsers.sharding_syntax.replica_groups import MeshGroups
from ..ir.types import ArrayType, array_type


def is_of_shardy(operation: Operation) -> bool:
    """Return whether an operation is `sdy.all_gather` or the like."""
    return operation.name.startswith("sdy.")


def groups_along_axes(operation: Operation, module: MlirModule) -> MeshGroups | None:
    """The groups along all axes that an operation names; None for a permutation, which names none."""
    mesh = _mesh(operation, module)
    reduced, of_dims, exchanges = (
        readable(lambda: operation.annotations.reduction_axes),
        readable(lambda: operation.annotations.axes_of_dims),
        readable(lambda: operation.annotations.exchanges),
    )
    lists = [reduced or (), *(of_dims or ()), *(each.axes for each in exchanges or ())]
    axes = tuple(axis for each in lists for axis in each)
    if mesh is None or not axes:
        return None
    try:
        return MeshGroups(mesh, axes)
    except ValueError:  # axes that the mesh does not have
        return None


def local_types(operation: Operation, module: MlirModule) -> tuple[tuple[ArrayType, ...], tuple[ArrayType, ...]]:
    """One device's part of the operand and of the result; nothing where the sharding is not of the mesh."""
    try:
        return _local_types(operation, module)
    except ValueError:
        return (), ()


def _local_types(operation: Operation, module: MlirModule) -> tuple[tuple[ArrayType, ...], tuple[ArrayType, ...]]:
    mesh, target = _mesh(operation, module), readable(lambda: operation.annotations.target)
    types = readable(lambda: operation.result_types) or ()
    result = array_type(types[0]) if types else None
    if (
        mesh is None
        or target is None
        or result is None
        or result.shape is None
        or len(target.dims) != len(result.shape)
    ):
        return (), ()
    after = [-(-size // _size(mesh, dim.axes)) for size, dim in zip(result.shape, target.dims, strict=True)]
    before = list(after)
    of_dims = readable(lambda: operation.annotations.axes_of_dims)
    for dim, axes in enumerate(of_dims or ()):
        times = _size(mesh, axes)
        before[dim] = after[dim] * times if operation.name == "sdy.reduce_scatter" else after[dim] // times
    for each in readable(lambda: operation.annotations.exchanges) or ():
        before[each.source] //= _size(mesh, each.axes)
        before[each.target] *= _size(mesh, each.axes)
    return (ArrayType(result.dtype, tuple(before)),), (ArrayType(result.dtype, tuple(after)),)


def _mesh(operation: Operation, module: MlirModule) -> MeshSyntax | None:
    target = readable(lambda: operation.annotations.target)
    name = None if target is None else target.mesh
    return name if isinstance(name, MeshSyntax) else module.meshes.get(name or "")


def _size(mesh: MeshSyntax, axes: Iterable[AxisRef]) -> int:
    return math.prod(map(mesh.axis_size, axes))
