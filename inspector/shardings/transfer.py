"""The bytes that devices have to receive for an array to be sharded otherwise."""

from __future__ import annotations

from ..capture.protocol.blocks import Block, received
from ..ir.array_sharding import ArraySharding
from ..ir.types import ArrayType
from .placement import placement_of


def pairs_of(type: ArrayType, before: ArraySharding | None, after: ArraySharding) -> dict[tuple[int | None, int], int]:
    """Bytes by sender and receiver; from None where the array is on the host before.

    Raises:
        ValueError: axes do not divide a dimension, or the size of the type is not known.
    """
    if type.shape is None or type.bytes is None or not type.elements:
        raise ValueError(f"{type}: the size of it is not known; a type is written as f32[4096,1024]")
    held = None if before is None else blocks_of(type.shape, before)
    return received(held, blocks_of(type.shape, after), type.bytes // type.elements)


def blocks_of(shape: tuple[int, ...], sharding: ArraySharding) -> dict[int, Block]:
    """The block of each device.

    Raises:
        ValueError: axes do not divide a dimension.
    """
    placed = placement_of(sharding)
    for number, (size, count) in enumerate(zip(shape, placed.parts, strict=True)):
        if size % count:
            raise ValueError(f"{count} parts do not divide dimension {number}, of {size}")
    sizes = [size // count for size, count in zip(shape, placed.parts, strict=True)]
    return {
        device: tuple((at * size, (at + 1) * size) for at, size in zip(tile, sizes, strict=True))
        for device, tile in zip(placed.devices, placed.tiles, strict=True)
    }
