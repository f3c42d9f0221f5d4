"""Shardings of the operands and results of an operation in the propagated program, dimension by dimension."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...parsers.mlir import TensorType
from ...parsers.mlir.sdy import DimensionSharding, Sharding
from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ..ir.array_sharding import ArraySharding
from ..ir.derived import derived
from ..ir.types import dtype_name
from .dataflow import Dataflow, Node
from .recorded import sharding_at
from .spelled import from_sdy
from .why import overlap


class ShardedDimension(Record, frozen=True):
    """A dimension of a value of the operation, the factors that it consists of, and the axes that it is cut along."""

    node: Node
    dim: int
    factors: tuple[str, ...]
    axes: tuple[AxisRef, ...]
    is_operand: bool


def local_size(flow: Dataflow, node: Node) -> int | None:
    """Return the number of elements of a value on one device; None if unknown."""
    type, sharding = _type(flow, node), placed_at(flow, node)
    if type is None or sharding is None or None in type.dims or len(type.dims) != len(sharding.dims):
        return None
    return math.prod(sharding.local_shape([dim for dim in type.dims if dim is not None]))


def dtype_of(flow: Dataflow, node: Node) -> str | None:
    """The dtype of a value's elements, as JAX writes it; None if unknown."""
    type = _type(flow, node)
    return None if type is None else dtype_name(type.element)


def _type(flow: Dataflow, node: Node) -> TensorType | None:
    match node.kind:
        case "argument":
            type = flow.function.arguments[node.number].type
        case "result" if node.number < len(flow.rows[node.row].types):
            type = flow.rows[node.row].types[node.number]
        case _:
            return None
    return type if isinstance(type, TensorType) else None


def dimensions_of(flow: Dataflow, row: int) -> Iterator[ShardedDimension]:
    """The dimensions of all operands and results of an operation."""
    rule = flow.records.rule(flow.rows[row])
    factors = ((), ()) if rule is None else (rule.operands, rule.results)
    for side, nodes, tensors in (
        (True, flow.operands(row), factors[0]),
        (False, flow.results(row), factors[1]),
    ):
        for index, node in enumerate(nodes):
            sharding: Sharding | None = None if node is None else sharding_at(flow, node)
            tensor = tensors[index] if index < len(tensors) else ()
            dims = () if sharding is None else sharding.dims
            for dim in range(max(len(dims), len(tensor))):
                axes = dims[dim].axes if dim < len(dims) else ()
                if node is not None:
                    yield ShardedDimension(node, dim, tensor[dim] if dim < len(tensor) else (), axes, side)


def have_same_axes(one: ShardedDimension, other: ShardedDimension) -> bool:
    """Return whether two dimensions are cut by the same axes: a permutation goes from one order to the other."""
    return sorted(map(str, one.axes)) == sorted(map(str, other.axes))


def with_axes(sharding: ArraySharding, dim: int, axes: tuple[AxisRef, ...]) -> ArraySharding:
    """A sharding with a dimension along `axes`, and no other one along any of them."""
    rest = [tuple(axis for axis in each.axes if not overlaps(axis, axes)) for each in sharding.dims]
    dims = tuple(DimensionSharding(axes if number == dim else own) for number, own in enumerate(rest))
    return replace(sharding, dims=dims)


def overlaps(axis: AxisRef, axes: Sequence[AxisRef]) -> bool:
    """Return whether an axis, or a part of one, has devices in common with any of these."""
    return any(overlap(axis, each) for each in axes)


def placed_at(flow: Dataflow, node: Node) -> ArraySharding | None:
    """Return a value's sharding after propagation; None if it has none, or one that cannot be placed."""
    return as_placed(flow, sharding_at(flow, node))


@derived
def as_placed(flow: Dataflow, sharding: Sharding | None) -> ArraySharding | None:
    """A sharding as it is when propagation is over; None where nothing is said, or what cannot be placed."""
    try:
        return None if sharding is None else from_sdy(sharding, flow.module.meshes).closed()
    except ValueError:
        return None
