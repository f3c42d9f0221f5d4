"""`bitcast` against memory that is filled element by element, by XLA's definition of layouts and tiles."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.evaluate.errors import NotEvaluatedError
from shardscope.inspector.evaluate.interpreter import Interpreter
from shardscope.inspector.evaluate.memory import bitcast
from shardscope.parsers.hlo import ArrayShape, parse_type

pytestmark = pytest.mark.once


def offsets(
    dims: tuple[int, ...], order: tuple[int, ...], tiles: tuple[tuple[int, ...], ...]
) -> Iterator[tuple[tuple[int, ...], int]]:
    """The place in memory of each element (xla/docs/tiled_layout.md)."""
    for index in product(*map(range, dims)):
        position, sizes = [index[each] for each in reversed(order)], [dims[each] for each in reversed(order)]
        for tile in tiles:
            missing = max(len(tile) - len(sizes), 0)
            position, sizes = [0] * missing + position, [1] * missing + sizes
            lead = len(sizes) - len(tile)
            outer = [at // side for at, side in zip(position[lead:], tile, strict=True)]
            inner = [at % side for at, side in zip(position[lead:], tile, strict=True)]
            counts = [-(-size // side) for size, side in zip(sizes[lead:], tile, strict=True)]
            position, sizes = position[:lead] + outer + inner, sizes[:lead] + counts + list(tile)
        place = 0
        for at, size in zip(position, sizes, strict=True):
            place = place * size + at
        yield index, place


TILES = [(), ((8, 128),), ((8, 128), (2, 1)), ((4, 8),), ((4,),), ((2, 4), (2, 1))]


@st.composite
def shapes(draw: st.DrawFn, dims: tuple[int, ...]) -> tuple[ArrayShape, tuple[int, ...], tuple[tuple[int, ...], ...]]:
    order = tuple(draw(st.permutations(range(len(dims)))))
    tiles = draw(st.sampled_from(TILES))
    text = ":T" + "".join(f"({','.join(map(str, tile))})" for tile in tiles) if tiles else ""
    shape = parse_type(f"f32[{','.join(map(str, dims))}]{{{','.join(map(str, order))}{text}}}")
    assert isinstance(shape, ArrayShape)
    return shape, order, tiles


@given(st.data(), st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=3))
def test_bitcast_reads_the_same_memory(data: st.DataObject, sizes: list[int]) -> None:
    dims = tuple(sizes)
    given_shape, order, tiles = data.draw(shapes(dims))
    other_dims = tuple(data.draw(st.permutations([*dims, 1])))
    wanted_shape, other_order, other_tiles = data.draw(shapes(other_dims))
    values = np.arange(1.0, np.prod(dims) + 1).reshape(dims)
    memory = {place: values[index] for index, place in offsets(dims, order, tiles)}
    expected = np.full(other_dims, np.nan)
    for index, place in offsets(other_dims, other_order, other_tiles):
        expected[index] = memory.get(place, np.nan)
    try:
        found = bitcast(values, given_shape, wanted_shape)
    except NotEvaluatedError:
        assert np.isnan(expected).any()  # an element is where the other has padding
        return
    np.testing.assert_array_equal(found, expected)


def test_padding_that_becomes_data_is_unwritten() -> None:
    small, large = parse_type("f32[3]{0:T(4)}"), parse_type("f32[4]{0:T(4)}")
    assert isinstance(small, ArrayShape)
    assert isinstance(large, ArrayShape)
    found = bitcast(np.arange(3.0), small, large)
    np.testing.assert_array_equal(found, [0, 1, 2, np.nan])
    np.testing.assert_array_equal(bitcast(found, large, small), [0, 1, 2])


@given(st.lists(st.booleans(), min_size=16, max_size=16))
def test_booleans_in_the_bytes_of_integers(bools: list[bool]) -> None:
    flags, words = parse_type("pred[2,8]{1,0:T(4,128)(4,1)}"), parse_type("u32[1,128]{1,0:T(1,128)}")
    assert isinstance(flags, ArrayShape)
    assert isinstance(words, ArrayShape)
    values = np.array(bools).reshape(2, 8)
    memory = np.zeros(4 * 128, np.uint8)
    for index, place in offsets((2, 8), (1, 0), ((4, 128), (4, 1))):
        memory[place] = values[index]
    found = bitcast(values, flags, words)
    np.testing.assert_array_equal(found, memory.view(np.uint32).reshape(1, 128))
    np.testing.assert_array_equal(bitcast(found, words, flags), values)
    scalar, word = parse_type("pred[]{:T(512)}"), parse_type("u32[]{:T(128)}")
    assert isinstance(scalar, ArrayShape)
    assert isinstance(word, ArrayShape)
    assert bitcast(np.array(bools[0]), scalar, word) == bools[0]


PREFETCHED = """HloModule m

ENTRY main {
  p = f32[6,2] parameter(0)
  s0 = ((f32[6,2]), f32[2,2], s32[]) slice-start(p), slice={[2:4], [0:2]}
  s1 = ((f32[6,2]), f32[2,2], s32[]) slice-start(p), slice={[4:6], [0:2]}
  s2 = ((f32[6,2]), f32[2,2], s32[]) slice-start(p), slice={[0:2], [0:2]}
  d0 = f32[2,2] slice-done(s0)
  d1 = f32[2,2] slice-done(s1)
  d2 = f32[2,2] slice-done(s2)
  ROOT c = f32[6,2] custom-call(d0, d1, d2), custom_call_target="ConcatBitcast"
}
"""


def test_slices_that_are_fetched_by_time_lie_where_they_start() -> None:
    """As libtpu lists them: what is put together is the array that was cut."""
    whole = np.arange(12.0).reshape(6, 2)
    np.testing.assert_array_equal(Interpreter(PREFETCHED, 1).run([[whole]])[0], whole)
