"""A sharding drawn: the parts of an array of any rank, each with the devices that hold it.

dim 1: 16/2
┌─────┬─────┐
│ 0 2 │ 1 3 │  dim 0: 256/4
├─────┼─────┤
│ 4 6 │ 5 7 │
└─────┴─────┘
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from ..ir.array_sharding import ArraySharding
from ..ir.placement import placement_of
from ..units import grouped

MAX_CELLS = 24
"""Parts along one dimension that are drawn."""

MAX_DEVICES = 6
"""Devices in one part that are spelled out."""

MAX_GRIDS = 8


def grid_lines(
    sharding: ArraySharding, shape: Sequence[int], devices: Sequence[int] = (), width: int = 80
) -> Iterator[str]:
    """The lines; `devices[p]` is the device that runs partition p. Dimensions that are not cut are one part."""
    placement = placement_of(sharding)
    numbers = [devices[partition] if partition < len(devices) else partition for partition in placement.devices]
    holders = grouped(zip(placement.tiles, numbers, strict=True))
    labels = [
        f"dim {dim}: {size}/{parts}" for dim, (size, parts) in enumerate(zip(shape, placement.parts, strict=True))
    ]
    outer, rows, columns = _folded(placement.parts)
    tiles = list(product(*(range(placement.parts[dim]) for dim in outer)))
    for tile in tiles[:MAX_GRIDS]:
        if outer:
            yield ", ".join(
                f"dim {dim}: part {index} of {placement.parts[dim]}" for dim, index in zip(outer, tile, strict=True)
            )
        cells = [
            [
                _cell(holders, _tile(len(shape), outer, tile, rows, row, columns, column))
                for column in _parts(columns, placement.parts)
            ]
            for row in _parts(rows, placement.parts)
        ]
        names = ["" if dim is None else labels[dim] for dim in (rows, columns)]
        yield from _box(cells, names[0], names[1], width)
    if len(tiles) > MAX_GRIDS:
        yield f"and {len(tiles) - MAX_GRIDS} more"
    whole = [dim for dim, parts in enumerate(placement.parts) if parts == 1 and dim not in (rows, columns)]
    if whole:
        yield f"unsharded: {', '.join(f'dim {dim}: {shape[dim]}' for dim in whole)}"


def _folded(parts: Sequence[int]) -> tuple[list[int], int | None, int | None]:
    """The dimensions of rows and of columns, the last two that are sharded, and those that distinguish grids."""
    cut = [dim for dim, count in enumerate(parts) if count > 1] or list(range(len(parts)))[-2:]
    if len(cut) < 2:
        # A vector lies, and a matrix of which only the rows are cut stands.
        only = cut[0] if cut else None
        return ([], only, None) if only == 0 and len(parts) > 1 else ([], None, only)
    return cut[:-2], cut[-2], cut[-1]


def _parts(dim: int | None, parts: Sequence[int]) -> range:
    return range(1 if dim is None else parts[dim])


def _tile(
    rank: int, outer: Sequence[int], tile: Sequence[int], rows: int | None, row: int, columns: int | None, column: int
) -> tuple[int, ...]:
    found = [0] * rank
    for dim, index in (*zip(outer, tile, strict=True), (rows, row), (columns, column)):
        if dim is not None:
            found[dim] = index
    return tuple(found)


def _cell(holders: dict[tuple[int, ...], list[int]], tile: tuple[int, ...]) -> str:
    found = sorted(holders.get(tile, []))
    if len(found) <= MAX_DEVICES:
        return " ".join(map(str, found))
    if found[-1] - found[0] == len(found) - 1:
        return f"{found[0]}–{found[-1]}"
    return f"{' '.join(map(str, found[:MAX_DEVICES]))} … ({len(found)} devices)"


def _box(cells: Sequence[Sequence[str]], rows: str, columns: str, width: int) -> Iterator[str]:
    shown = [row[:MAX_CELLS] for row in cells[:MAX_CELLS]]
    size = max((len(cell) for row in shown for cell in row), default=1)
    fitting = max((width - 1) // (size + 3), 1)
    shown = [row[:fitting] for row in shown]
    count = len(shown[0]) if shown else 0
    rule = "─" * (size + 2)
    if columns:
        yield columns + (f", the first {count}" if count < len(cells[0]) else "")
    yield f"┌{'┬'.join([rule] * count)}┐"
    for number, row in enumerate(shown):
        if number:
            yield f"├{'┼'.join([rule] * count)}┤"
        beside = f"  {rows}" if rows and number == 0 else ""
        yield f"│{'│'.join(f' {cell:^{size}} ' for cell in row)}│{beside}"
    yield f"└{'┴'.join([rule] * count)}┘"
    if len(shown) < len(cells):
        yield f"and {len(cells) - len(shown)} more rows"
