"""`bitcast`: the same memory, read with another shape, layout and type. Only here do layouts matter."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from ...parsers.hlo import ArrayShape, parse_layout
from .element_types import Array, bits, bits_of, from_bits
from .errors import NotEvaluatedError


def bitcast(array: Array, given: ArrayShape, wanted: ArrayShape) -> Array:
    """The array of type `given` as one of type `wanted` over the same memory."""
    if given.dtype != wanted.dtype:
        if bits(given.dtype) != bits(wanted.dtype) and (
            _order(given) != _order(wanted) or _tiles(given) != _tiles(wanted)
        ):
            return _regrouped(array, given, wanted)
        dims = given.dims if bits(given.dtype) == bits(wanted.dtype) else wanted.dims
        dims = dims or np.shape(array)  # a computation on scalars, on arrays
        array = reinterpreted(array, given.dtype, wanted.dtype, dims)
        given = ArrayShape(wanted.dtype, dims if given.dims else (), given.layout)
    if given.dims == wanted.dims and (given.layout == wanted.layout or _places(given) is _places(wanted)):
        return array
    if _is_row_major(given) and _is_row_major(wanted) and array.size == int(np.prod(wanted.dims, dtype=np.int64)):
        return array.reshape(wanted.dims)
    order = _permutation(_key(given), _key(wanted))
    flat = np.ascontiguousarray(array).reshape(-1)
    found = flat[np.maximum(order, 0)]
    if (order < 0).any():
        found[order < 0] = np.nan if found.dtype.kind in "fc" else 0
    return found.reshape(wanted.dims)


def _regrouped(array: Array, given: ArrayShape, wanted: ArrayShape) -> Array:
    """Elements of another size in another layout, as four booleans in one integer; padding is zero."""
    if (
        np.shape(array) != given.dims
        or min(bits(given.dtype), bits(wanted.dtype)) < 8
        or "c128" in (given.dtype, wanted.dtype)
    ):
        raise NotEvaluatedError(f"bitcast of {given} to {wanted}: elements of other sizes in another layout")
    before, after = _places(given), _places(wanted)
    elements = bits_of(array, given.dtype).reshape(-1)
    raw = np.where(before >= 0, elements[np.maximum(before, 0)], 0).astype(elements.dtype).view(np.uint8)
    size = bits(wanted.dtype) // 8
    words = raw[: raw.size // size * size].view(f"u{size}")[: after.size]
    if (after[words.size :] >= 0).any():
        raise NotEvaluatedError(f"bitcast between unlike tilings, of {given} to {wanted}")
    known = after[: words.size] >= 0
    found = np.zeros(int(np.prod(wanted.dims, dtype=np.int64)), words.dtype)
    found[after[: words.size][known]] = words[known]
    return from_bits(found, wanted.dtype).reshape(wanted.dims)


def reinterpreted(array: Array, given: str, wanted: str, dims: tuple[int, ...]) -> Array:
    """`bitcast-convert`: a last dimension is added or lost where the elements' sizes differ."""
    if given == "pred" or wanted == "pred" or bits(given) == bits(wanted):
        return from_bits(bits_of(array, given), wanted).reshape(dims)
    raw = bits_of(array, given)
    into = np.dtype(f"u{bits(wanted) // 8}")
    return from_bits(np.ascontiguousarray(raw).view(into), wanted).reshape(dims)


Key = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...]]
"""The sizes of an array, its dimensions from minor to major, and its tiles."""


def _key(shape: ArrayShape) -> Key:
    return shape.dims, _order(shape), _tiles(shape)


def _order(shape: ArrayShape) -> tuple[int, ...]:
    default = tuple(range(len(shape.dims)))[::-1]
    return default if shape.layout is None else parse_layout(shape.layout).minor_to_major or default


@lru_cache(maxsize=4096)
def _tiles_of(layout: str) -> tuple[tuple[int, ...], ...]:
    found = [texts for letters, texts in parse_layout(layout).properties if letters == "T"]
    tiles = tuple(tuple(map(int, re.findall(r"\d+", text))) for text in (found[0] if found else ()) if "*" not in text)
    if found and len(tiles) != len(found[0]):
        raise NotEvaluatedError(f"layout {layout}: a tile with *")
    return tiles


def _tiles(shape: ArrayShape) -> tuple[tuple[int, ...], ...]:
    return () if shape.layout is None else _tiles_of(shape.layout)


def _is_row_major(shape: ArrayShape) -> bool:
    significant = [dim for dim in _order(shape) if shape.dims[dim] != 1]
    return not _tiles(shape) and significant == sorted(significant, reverse=True)


def outermost(shape: ArrayShape) -> int:
    """The dimension whose steps are the largest in memory."""
    return _order(shape)[-1] if shape.dims else 0


def _places(shape: ArrayShape) -> Array:
    return _memory(*_key(shape))


@lru_cache(maxsize=256)
def _memory(dims: tuple[int, ...], order: tuple[int, ...], tiles: tuple[tuple[int, ...], ...]) -> Array:
    """The number of the element at each place in memory, row-major; -1 for padding."""
    places = np.arange(int(np.prod(dims, dtype=np.int64))).reshape(dims).transpose(order[::-1])
    for tile in tiles:
        count = len(tile)
        if places.ndim < count:
            places = places.reshape((1,) * (count - places.ndim) + places.shape)
        lead = places.shape[:-count]
        missing = [(0, -size % side) for size, side in zip(places.shape[-count:], tile, strict=True)]
        places = np.pad(places, [(0, 0)] * len(lead) + missing, constant_values=-1)
        split = [part for size, side in zip(places.shape[-count:], tile, strict=True) for part in (size // side, side)]
        first = len(lead)
        outer, inner = range(first, first + 2 * count, 2), range(first + 1, first + 2 * count, 2)
        places = places.reshape(lead + tuple(split)).transpose((*range(first), *outer, *inner))
    return places.reshape(-1)


@lru_cache(maxsize=256)
def _permutation(given: Key, wanted: Key) -> Array:
    """For each element of `wanted` the number of that of `given` in the same place; -1 for padding of `given`.

    Memory spaces pad small arrays differently: where padding does not explain the sizes, and both have as many
    elements, one after the other, there is no telling which place is which.
    """
    before, after = _memory(*given), _memory(*wanted)
    size = int(np.prod(wanted[0], dtype=np.int64))
    shared = min(len(before), len(after))
    if len(after) > shared and (after[shared:] >= 0).any():
        raise NotEvaluatedError(f"bitcast between unlike tilings, of {given[0]} to {wanted[0]}")
    before, after = before[:shared], after[:shared]
    order: Array = np.full(size, -1, np.int64)
    known = after >= 0
    order[after[known]] = before[known]
    lost = int(np.prod(given[0], dtype=np.int64)) - int((order >= 0).sum())
    if lost > 0 and (order < 0).any():
        raise NotEvaluatedError(f"bitcast between unlike tilings, of {given[0]} to {wanted[0]}")
    return order
