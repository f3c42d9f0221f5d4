"""A drawn sharding shows on each part the devices that numpy counts there."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from shardscope.inspector.ir.sharding_spellings import from_spec
from shardscope.inspector.render.sharding_grid import MAX_CELLS, MAX_DEVICES, MAX_GRIDS, grid_lines
from shardscope.parsers.sharding_syntax.jax_arrays import parse_spec
from shardscope.parsers.sharding_syntax.mesh import MeshSyntax

SIZES = {"a": 2, "b": 3, "c": 2}
MESH = MeshSyntax(tuple(SIZES.items()))
DEVICES = np.arange(12).reshape(*SIZES.values())
SHAPE = (12, 24, 36, 48)


def drawn(*dims: str, mesh: MeshSyntax = MESH, **fields: object) -> list[str]:
    spec = ", ".join(f"({', '.join(map(repr, dim))},)" if dim else "None" for dim in dims)
    return list(grid_lines(from_spec(parse_spec(f"P({spec})"), mesh, len(dims)), SHAPE[: len(dims)], **fields))  # type: ignore[arg-type]


def held(dims: tuple[str, ...], tile: tuple[int, ...]) -> str:
    """The devices of a part, by the place of each in the mesh."""
    there = []
    for coordinates, device in np.ndenumerate(DEVICES):
        at = dict(zip(SIZES, coordinates, strict=True))
        indices = (
            int(np.ravel_multi_index([at[axis] for axis in dim], [SIZES[axis] for axis in dim])) for dim in dims if dim
        )
        if tuple(indices) == tuple(index for index, dim in zip(tile, dims, strict=True) if dim):
            there.append(int(device))
    if len(there) <= MAX_DEVICES:
        return " ".join(map(str, there))
    if there == [*range(there[0], there[0] + len(there))]:
        return f"{there[0]}–{there[-1]}"
    return f"{' '.join(map(str, there[:MAX_DEVICES]))} … ({len(there)} devices)"


@pytest.mark.parametrize(
    "dims",
    [
        ("",), ("a",), ("ab",), ("ba",), ("abc",), ("", ""), ("a", ""), ("", "a"), ("c", "b"), ("ca", "b"),
        ("", "ab", ""), ("", "b", ""), ("a", "", "b"), ("b", "c", ""), ("a", "b", "c"), ("c", "b", "a"),
        ("a", "", "b", "c"), ("", "", ""), ("b", "", "", ""),
    ],
)  # fmt: skip
def test_parts_and_their_devices(dims: tuple[str, ...]) -> None:
    """The last two sharded dimensions are rows and columns, with a grid for each part of the others."""
    parts = [int(np.prod([SIZES[axis] for axis in dim])) for dim in dims]
    cut = [n for n, count in enumerate(parts) if count > 1] or [*range(len(dims))][-2:]
    if len(cut) > 1:
        outer, rows, columns = cut[:-2], cut[-2:-1], cut[-1:]
    else:
        outer, rows, columns = [], *((cut, []) if cut == [0] and len(dims) > 1 else ([], cut))
    lines = drawn(*dims)
    grids = [
        [cell.strip() for cell in line[1:].rpartition("│")[0].split("│")] for line in lines if line.startswith("│")
    ]
    expected = []
    for tile in product(*(range(parts[n]) for n in outer)):
        for row in range(parts[rows[0]] if rows else 1):
            cells = []
            for column in range(parts[columns[0]] if columns else 1):
                at = [0] * len(dims)
                for n, index in (
                    *zip(outer, tile, strict=True),
                    *((n, row) for n in rows),
                    *((n, column) for n in columns),
                ):
                    at[n] = index
                cells.append(held(dims, tuple(at)))
            expected.append(cells)
    assert grids == expected
    boxes = int(np.prod([parts[n] for n in outer]))
    assert [line for line in lines if line.startswith("dim") and "part" in line] == [
        ", ".join(f"dim {n}: part {index} of {parts[n]}" for n, index in zip(outer, tile, strict=True))
        for tile in product(*(range(parts[n]) for n in outer))
        if outer
    ]
    assert [line for line in lines if line in {f"dim {n}: {SHAPE[n]}/{parts[n]}" for n in range(len(dims))}] == [
        f"dim {n}: {SHAPE[n]}/{parts[n]}" for n in columns
    ] * boxes
    for n in rows:
        assert sum(line.endswith(f"│  dim {n}: {SHAPE[n]}/{parts[n]}") for line in lines) == boxes
    whole = [n for n, count in enumerate(parts) if count == 1 and n not in (*rows, *columns)]
    unsharded = [f"unsharded: {', '.join(f'dim {n}: {SHAPE[n]}' for n in whole)}"] if whole else []
    assert [line for line in lines if line.startswith("unsharded")] == unsharded
    for sign, count in (("┌", boxes), ("└", boxes), ("├", len(grids) - boxes)):
        ruled = [line for line in lines if line.startswith(sign)]
        assert len(ruled) == count
        assert {len(line) for line in ruled} <= {len(line) for line in lines if line.startswith("└")}


def test_numbers_of_devices_are_those_of_the_assignment() -> None:
    """Partitions beyond it keep their own."""
    (cells,) = [line for line in drawn("a", devices=[20, 21, 22]) if line.startswith("│")]
    assert [cell.split() for cell in cells.split("│")[1:3]] == [
        ["3", "4", "5", "20", "21", "22"],
        ["6", "7", "8", "9", "10", "11"],
    ]


@pytest.mark.parametrize(("size", "shown"), [(MAX_CELLS, MAX_CELLS), (MAX_CELLS + 1, MAX_CELLS)])
def test_long_dimensions(size: int, shown: int) -> None:
    mesh = MeshSyntax((("a", size),))
    lying = drawn("a", mesh=mesh, width=1000)
    assert lying[0].endswith(f", the first {shown}") == (size > shown)
    assert lying[2].count("│") == shown + 1
    standing = drawn("a", "", mesh=mesh)
    assert sum(line.startswith("│") for line in standing) == shown
    assert (f"and {size - shown} more rows" in standing) == (size > shown)


@pytest.mark.parametrize(("width", "shown"), [(17, 4), (16, 3), (13, 3), (12, 2), (5, 1), (1, 1)])
def test_no_wider_than_there_is_room(width: int, shown: int) -> None:
    """A part of one digit takes four columns, and the grid one more; one part is always shown."""
    lines = drawn("a", mesh=MeshSyntax((("a", 8),)), width=width)
    assert lines[2].count("│") == shown + 1
    assert len(lines[2]) <= max(width, 5)
    assert lines[0] == f"dim 0: 12/8, the first {shown}"


@pytest.mark.parametrize("size", [MAX_GRIDS, MAX_GRIDS + 1])
def test_many_grids(size: int) -> None:
    lines = drawn("a", "b", "c", mesh=MeshSyntax((("a", size), ("b", 2), ("c", 2))))
    assert sum(line.startswith("┌") for line in lines) == MAX_GRIDS
    assert (f"and {size - MAX_GRIDS} more" in lines) == (size > MAX_GRIDS)
