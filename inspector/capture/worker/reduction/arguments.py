"""Smaller arguments of a call: shorter lists, as of layers, and smaller dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..inputs.arg_spec import MAX_INTEGER, is_abstract
from ..inputs.callables import Arguments

Key = tuple[str, int, int]
"""A list or a dimension, its size, and its new one."""


def smaller_arguments(given: Arguments) -> Iterator[tuple[Key, Callable[[], Any]]]:
    """Changes of arguments, each with a function that makes it: lists first, then dimensions, the largest first.

    Lists of one length are shortened together, and so are dimensions of one size.
    """
    lengths = {len(each) for argument in (*given[0], *given[1].values()) for each in _lists(argument)}
    for length in sorted(lengths, reverse=True):
        for shorter in {1, length // 2}:
            yield ("list", length, shorter), partial(_shorter, given, length, shorter)
    leaves = [leaf for leaf in jax.tree.leaves(given) if _is_array(leaf)]
    has_indices = any(is_abstract(leaf) and jnp.issubdtype(leaf.dtype, jnp.integer) for leaf in leaves)
    least = MAX_INTEGER if has_indices else 1  # abstract integers are indices below it
    for size in sorted({size for leaf in leaves for size in leaf.shape}, reverse=True):
        for smaller in (size // 8, size // 2):
            if smaller >= least and size % smaller == 0:
                change = partial(_resized, size=size, smaller=smaller)
                yield ("dimension", size, smaller), partial(jax.tree.map, change, given)


def _is_array(leaf: Any) -> bool:
    is_key = jnp.issubdtype(getattr(leaf, "dtype", bool), jax.dtypes.prng_key)
    return not is_key and (isinstance(leaf, jax.Array | np.ndarray) or is_abstract(leaf))


def _lists(value: Any) -> Iterator[Any]:
    """The lists and tuples in a value whose elements are alike."""
    is_list = type(value) in (list, tuple)
    if is_list and len(value) > 1 and len(set(map(_outline, value))) == 1:
        yield value
    for each in value if is_list else value.values() if isinstance(value, dict) else ():
        yield from _lists(each)


def _outline(value: Any) -> str:
    return str(jax.tree.map(lambda leaf: getattr(leaf, "shape", type(leaf)), value))


def _shorter(given: Arguments, length: int, shorter: int) -> Arguments:
    def change(value: Any) -> Any:
        if isinstance(value, dict):
            return type(value)((name, change(each)) for name, each in value.items())
        if type(value) not in (list, tuple):
            return value
        is_alike = len(value) == length and len(set(map(_outline, value))) == 1
        return type(value)(map(change, value[:shorter] if is_alike else value))

    return tuple(map(change, given[0])), change(given[1])


def _resized(leaf: Any, size: int, smaller: int) -> Any:
    """The beginning of an array along dimensions of a size; integers that may be indices into one stay in range."""
    if not _is_array(leaf):
        return leaf
    shape = tuple(smaller if each == size else each for each in leaf.shape)
    if is_abstract(leaf):
        return jax.ShapeDtypeStruct(shape, leaf.dtype, sharding=leaf.sharding)
    whole = np.asarray(leaf)
    values = whole[tuple(map(slice, shape))]
    if jnp.issubdtype(leaf.dtype, jnp.integer) and smaller <= whole.max(initial=0) < size:
        values = values % smaller
    return jax.device_put(values, leaf.sharding) if isinstance(leaf, jax.Array) else values
