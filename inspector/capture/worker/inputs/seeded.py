"""Values for abstract arguments: the same for the same seed, of the right dtype, finite and not all alike."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

LARGEST_INTEGER = 8
"""Integers are below this: they are as likely as not indices into something."""

KEY_IMPLEMENTATIONS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}
"""How JAX prints the type of its random keys, and how it names their kinds."""


def is_abstract(leaf: Any) -> bool:
    """Whether an argument has a type but no value."""
    return isinstance(leaf, jax.ShapeDtypeStruct)


def concrete(leaf: Any, seed: int, index: int) -> Any:
    """The leaf itself if it has a value, else a value for it; `index` tells the leaves of one call apart."""
    if not is_abstract(leaf):
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return _keys(leaf, seed, index)
    generator = np.random.default_rng((seed, index))
    if jnp.issubdtype(leaf.dtype, jnp.bool_):
        return generator.integers(0, 2, leaf.shape).astype(bool)
    if jnp.issubdtype(leaf.dtype, jnp.integer):
        largest = int(jnp.iinfo(leaf.dtype).max)
        return generator.integers(0, min(LARGEST_INTEGER, largest + 1), leaf.shape).astype(leaf.dtype)
    values = generator.standard_normal(leaf.shape, dtype=np.float32)
    if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
        values = values + 1j * generator.standard_normal(leaf.shape, dtype=np.float32)
    elif not jnp.issubdtype(leaf.dtype, jnp.floating):
        return np.zeros(leaf.shape, leaf.dtype)  # float0 and what else has no values
    else:
        limit = float(jnp.finfo(leaf.dtype).max)
        values = np.clip(values, -limit, limit)
    return values.astype(leaf.dtype)


def _keys(leaf: Any, seed: int, index: int) -> Any:
    root = jax.random.fold_in(jax.random.key(seed, impl=KEY_IMPLEMENTATIONS.get(str(leaf.dtype))), index)
    return jax.random.split(root, leaf.shape) if leaf.shape else root
