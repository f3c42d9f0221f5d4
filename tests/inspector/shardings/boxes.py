"""The part of a global array on each device, as a box of indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardscope.inspector.ir.array_sharding import ArraySharding
from shardscope.inspector.ir.placement import placement_of

Piece = tuple[tuple[int, int], ...]
"""A box of a global array: from and to, in each dimension."""


def pieces(sharding: ArraySharding, shape: Sequence[int]) -> Mapping[int, Piece]:
    """What each device holds of a global array, without padding; a device beyond its end holds an empty box."""
    local = sharding.local_shape(shape)
    placement = placement_of(sharding)
    return {
        device: tuple(
            (min(index * length, size), min((index + 1) * length, size))
            for index, length, size in zip(tile, local, shape, strict=True)
        )
        for device, tile in zip(placement.devices, placement.tiles, strict=True)
    }
