"""The use that an operation makes of its values' dimensions, by its sharding rule."""

from __future__ import annotations

import math

from ...parsers.mlir import ShardingRule
from ...parsers.record import Record
from .dataflow import Dataflow
from .sharded_dimensions import ShardedDimension, placed_at

ACROSS = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("slice", "dynamic_slice", "dynamic_update_slice", "concatenate", "pad", "reverse", "gather", "scatter"),
        *("sort", "convolution", "reduce_window", "select_and_scatter", "cholesky", "triangular_solve", "fft"),
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
