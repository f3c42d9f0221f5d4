"""Values that a collective can move, by their dtypes: no integers where it moves floats, nor the other way round."""

from __future__ import annotations

from collections.abc import Sequence

from ..report import Collective
from .dataflow import Dataflow
from .sharded_dimensions import ShardedDimension, dtype_of


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
