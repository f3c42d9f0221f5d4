"""The operands and results of an operation in the propagated program, dimension by dimension.

Their shardings and dtypes, the shardings that the operation requests for them, and the use that it makes of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...parsers.errors import ParseError
from ...parsers.mlir import ShardingRule, TensorType
from ...parsers.mlir.sdy import DimensionSharding, Sharding
from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ..catalog.spellings import SDY_REQUESTS
from ..dataflow.mlir import Dataflow, Node
from ..ir.array_sharding import ArraySharding
from ..ir.derived import derived
from ..ir.sharding_spellings import from_sdy
from ..ir.types import dtype_name
from ..report import Collective
from .recorded import sharding_at
from .why import overlap


def wanted_by(flow: Dataflow, row: int) -> Iterator[tuple[Node, ArraySharding | None]]:
    """Yield the operands of a constraint, a reshard or a shard_map, each with the requested sharding."""
    name, operands = flow.rows[row].name, flow.operands(row)
    if name == "sdy.manual_computation":
        try:
            specs = flow.operation(row).annotations.in_shardings or ()
        except ParseError:
            return
        wanted = [as_placed(flow, spec) for spec in specs]
    elif name in SDY_REQUESTS:
        wanted = [placed_at(flow, node) for node in flow.results(row)]
    else:
        return
    yield from ((node, own) for node, own in zip(operands, wanted, strict=False) if node is not None)


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


def of_its_dtype(
    flow: Dataflow, collective: Collective, cuts: Sequence[ShardedDimension]
) -> Sequence[ShardedDimension]:
    """Return the dimensions of values that it can move; all where none has a dtype of its operands.

    A compiler widens floats, and moves some as integers of as many bits.
    """
    moved = {each.dtype for each in collective.operand_types}
    dtypes = [dtype_of(flow, each.node) for each in cuts]
    if not moved & set(dtypes):
        return cuts
    kinds = set(map(is_whole, moved))
    return [each for each, dtype in zip(cuts, dtypes, strict=True) if dtype is None or is_whole(dtype) in kinds]


def moves_whole_numbers(collective: Collective) -> bool:
    """Return whether it moves nothing but integers, as indices, or positions of what is largest."""
    return all(is_whole(each.dtype) for each in collective.operand_types)


def floats_among(flow: Dataflow, cuts: Sequence[ShardedDimension]) -> Sequence[ShardedDimension]:
    """Return the dimensions of values that are no integers."""
    return [each for each in cuts if not is_whole(dtype_of(flow, each.node) or "")]


def is_whole(dtype: str) -> bool:
    """Return whether a dtype has whole numbers, or truth values."""
    return dtype.startswith(("i", "u", "bool"))


ACROSS = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("slice", "dynamic_slice", "dynamic_update_slice", "concatenate", "pad", "reverse", "gather", "scatter"),
        *("sort", "convolution", "reduce_window", "select_and_scatter", "cholesky", "triangular_solve"),
    )
)
"""Operations that need elements of other parts of a dimension."""


class DimensionUse(Record, frozen=True):
    """The operation at this row of the propagated program."""

    flow: Dataflow
    row: int

    @property
    def rule(self) -> ShardingRule | None:
        """Its sharding rule; None for an operation that has none."""
        return self.flow.records.rule(self.flow.rows[self.row])

    def reduces(self, cut: ShardedDimension) -> bool:
        """Return whether the operation reduces over the dimension."""
        return self.rule is not None and not set(cut.factors).isdisjoint(self.rule.reduction)

    def is_crossed(self, cut: ShardedDimension) -> bool:
        """Return whether the operation works across the parts of the dimension."""
        if self.rule is None or self.flow.rows[self.row].name in ACROSS:
            return True
        kept = {*self.rule.need_replication, *self.rule.permutation}
        return not kept.isdisjoint(cut.factors)

    def merges(self, cut: ShardedDimension) -> bool:
        """Return whether a result has the dimension behind another one, as the minor part of one of its own."""
        results = () if self.rule is None else self.rule.results
        return any(not set(cut.factors).isdisjoint(dim[1:]) for result in results for dim in result)

    def is_kept(self, cut: ShardedDimension) -> bool:
        """Return whether a result may have the axes of an operand's dimension, in blocks of its major part."""
        parts = self._parts(cut)
        if parts is None:
            return False
        devices, sizes = parts
        return bool(sizes) and sizes[0] % devices == 0

    def could_keep(self, cut: ShardedDimension) -> bool:
        """Return whether a reshape splits the dimension where parts of its axes divide it."""
        parts = self._parts(cut)
        if parts is None:
            return False
        left, sizes = parts
        for size in sizes:
            shared = math.gcd(left, size)
            if shared not in (left, size):
                return False
            left //= shared
        return len(sizes) > 1 and left == 1

    def _parts(self, cut: ShardedDimension) -> tuple[int, list[int]] | None:
        """Return the number of an operand dimension's blocks, and the sizes of its factors; None for merged ones."""
        sharding = placed_at(self.flow, cut.node)
        if not cut.is_operand or sharding is None or self.rule is None or self.merges(cut):
            return None
        sizes = dict(self.rule.sizes)
        return sharding.size_along(cut.axes), [sizes.get(factor, 1) for factor in cut.factors]
