"""A requested sharding and an actual one, by the definition: each dimension as requested, or further split if open."""

from __future__ import annotations

from itertools import permutations, product

from shardscope.inspector.ir.array_sharding import ArraySharding, DimensionSharding
from shardscope.inspector.shardings.requested import agrees
from shardscope.parsers.sharding_syntax.mesh import AxisRef, MeshSyntax

SIZES = {"x": 2, "y": 3, "z": 2}
MESH = MeshSyntax(tuple(SIZES.items()))
DIMS = [axes for count in range(3) for axes in permutations(SIZES, count)]


def sharding(*dims: tuple[tuple[str, ...], bool]) -> ArraySharding:
    return ArraySharding(
        MESH, tuple(DimensionSharding(tuple(map(AxisRef, axes)), is_open=is_open) for axes, is_open in dims)
    )


def test_of_one_dimension() -> None:
    for requested, actual, is_open in product(DIMS, DIMS, (False, True)):
        expected = actual[: len(requested)] == requested if is_open else actual == requested
        assert agrees(sharding((requested, is_open)), sharding((actual, False))) == expected, (
            requested,
            actual,
            is_open,
        )


def test_of_two_dimensions() -> None:
    """An axis that one dimension requests is no further one of another."""
    assert agrees(sharding(((), True), (("y",), False)), sharding((("x",), False), (("y",), False)))
    assert not agrees(sharding(((), True), (("y",), False)), sharding((("y",), False), ((), False)))
    assert not agrees(sharding(((), True), ((), False)), sharding((("x",), False), (("y",), False)))
    assert not agrees(sharding(((), True)), sharding(((), False), ((), False)))
