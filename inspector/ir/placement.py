"""Shardings by device: two spellings are the same sharding if they place values alike. Bytes between two of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from ..capture.protocol.blocks import Block, received
from .array_sharding import ArraySharding, merged
from .meshes import partitions_of
from .types import ArrayType


class Placement(Record, frozen=True):
    """The part of a value on each of `devices` (partition numbers, ascending).

    `parts` are the counts in each dimension, `tiles[n]` the coordinates of the n-th device's part among them. Devices
    with one number in `manual` belong to the same run of a shard_map's body; those of one part and one number in
    `sums` hold the same values, and those with several are still to be reduced with each other.
    """

    parts: tuple[int, ...]
    devices: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...]
    manual: tuple[int, ...]
    sums: tuple[int, ...]
    reduction: str


@lru_cache(maxsize=8192)
def placement_of(sharding: ArraySharding) -> Placement:
    """The meaning of a sharding. Equal ones have equal placements."""
    mesh = sharding.mesh
    order = sorted((device, position) for position, device in enumerate(partitions_of(mesh)))
    positions = [position for _, position in order]
    columns = [indices(dim.axes, mesh, positions) for dim in sharding.dims]
    tiles = tuple(zip(*columns, strict=True)) if columns else ((),) * len(order)
    manual = _numbered(indices(sharding.manual, mesh, positions))
    reductions = indices(sharding.unreduced, mesh, positions)
    # Each sum is counted for itself: only who is in one class with whom has a meaning.
    within = [*zip(tiles, manual, strict=True)]
    sums = _numbered_within(within, reductions)
    return Placement(
        parts=sharding.parts,
        devices=tuple(device for device, _ in order),
        tiles=tiles,
        manual=manual,
        sums=sums,
        reduction=sharding.reduction if any(sums) else "sum",
    )


def same(one: ArraySharding, other: ArraySharding) -> bool:
    """Return whether two shardings place values of one rank alike."""
    return one == other or placement_of(one) == placement_of(other)


def indices(axes: Iterable[AxisRef], mesh: MeshSyntax, positions: Sequence[int]) -> tuple[int, ...]:
    """For each position in the mesh its number along some axes together, the last one varying fastest."""
    found = [0] * len(positions)
    for axis in axes:
        stride, size = stride_of(axis, mesh), mesh.axis_size(axis)
        found = [number * size + position // stride % size for number, position in zip(found, positions, strict=True)]
    return tuple(found)


def stride_of(axis: AxisRef, mesh: MeshSyntax) -> int:
    """Return the number of mesh positions between neighbours along an axis or a part of one."""
    stride, found = 1, 0
    for name, size in reversed(mesh.axes):
        if name == axis.name:
            pre, length = axis.sub or (1, size)
            found = stride * (size // (pre * length))
        stride *= size
    return found


def _numbered(labels: Iterable[int]) -> tuple[int, ...]:
    numbers: dict[int, int] = {}
    return tuple(numbers.setdefault(label, len(numbers)) for label in labels)


def _numbered_within(groups: Iterable[object], labels: Iterable[int]) -> tuple[int, ...]:
    numbers: dict[object, dict[int, int]] = {}
    found = []
    for group, label in zip(groups, labels, strict=True):
        inside = numbers.setdefault(group, {})
        found.append(inside.setdefault(label, len(inside)))
    return tuple(found)


ANONYMOUS = "axis_"
"""The names of axes that are nobody's, as XLA calls them: `axis_0`."""


@lru_cache(maxsize=4096)
def axes_of_tiles(
    tiles: tuple[int, ...], devices: tuple[int, ...], mesh: MeshSyntax
) -> tuple[tuple[AxisRef, ...], ...] | None:
    """For each dimension of a tile assignment the axes, or parts of axes, along which it goes; None if none do.

    `devices` are in row-major order of the tiles. A dimension goes along axes where its coordinate, written in the
    right radices, consists of digits of the position in the mesh.
    """
    position_of = {device: position for position, device in enumerate(partitions_of(mesh))}
    if len(devices) != mesh.size or not position_of.keys() >= set(devices):
        return None
    found = []
    stride = len(devices)
    for count in tiles:
        stride //= count
        offsets = [position_of[devices[index * stride]] for index in range(count)]
        digits = _digits(offsets)
        axes = None if digits is None else [_axes(step, length, mesh) for step, length in digits]
        if axes is None or None in axes:
            return None
        found.append(merged((axis for part in axes if part is not None for axis in part), mesh))
    try:
        mesh.split([axis for axes in found for axis in axes])
    except ValueError:
        return None
    numbers = indices([axis for axes in found for axis in axes], mesh, range(mesh.size))
    by_number = sorted(zip(numbers, partitions_of(mesh), strict=True))
    return tuple(found) if [device for _, device in by_number] == list(devices) else None


def _digits(offsets: Sequence[int]) -> list[tuple[int, int]] | None:
    """The (stride, count) of each digit, major to minor, when `offsets[i]` is a sum of digits of i times strides."""
    digits: list[tuple[int, int]] = []
    rest = list(offsets)
    if rest[0] != 0:
        return None
    while len(rest) > 1:
        step = rest[1]
        run = next((n for n in range(1, len(rest)) if rest[n] != n * step), len(rest))
        count = math.gcd(run, len(rest)) if run < len(rest) else run
        if count == 1 or step <= 0:
            return None
        digits.append((step, count))
        rest = rest[::count]
    return digits[::-1]


def _axes(step: int, count: int, mesh: MeshSyntax) -> tuple[AxisRef, ...] | None:
    """The axes, or parts, that are this digit of the position: neighbours are `step` apart, and there are `count`."""
    found: list[AxisRef] = []
    stride = 1
    for name, size in reversed(mesh.axes):
        low, high = max(stride, step), min(stride * size, step * count)
        if low < high:
            if low % stride or high % low or (stride * size) % high:
                return None
            found.append(AxisRef(name, (stride * size // high, high // low)))
        stride *= size
    return tuple(reversed(found))


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
