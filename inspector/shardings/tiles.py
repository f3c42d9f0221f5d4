"""The mesh axes that form a tile assignment: what GSPMD's strings have forgotten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from ...parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from ..ir.array_sharding import merged
from ..ir.mesh_axes import partitions_of
from .placement import indices

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
