"""A value's bits in 64 bits: computed on the device, so that shards can be compared without moving them.

Small values are moved as they are: a compiler takes milliseconds for each digest, and programs have thousands.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..program.avals import is_ref

_ODD = np.uint32(0x9E3779B1)
"""A multiplier that spreads bits: 2**32 over the golden ratio."""


MAX_MOVED = 1 << 16
"""Bytes of one value, on all devices together, up to which it is moved."""


def comparable(value: Any, devices: int) -> Any:
    """Return the digest that distinguishes `bits` of different shards on so many devices, or the value itself."""
    value = plain(value)
    return value if value.size * jnp.dtype(value.dtype).itemsize * devices <= MAX_MOVED else digest(value)


def bits(array: Any) -> Any:
    """An array with one more dimension, of the bytes of each element: NaNs and signs of zero count as bits."""
    return np.ascontiguousarray(array)[..., None].view(np.uint8)


def digest(value: Any) -> Any:
    """`uint32[2]`: equal for equal bits, and different for almost all others. NaNs and signs of zero count as bits."""
    words = _words(value)
    place = 2 * lax.iota(jnp.uint32, words.size) + 1
    mixed = (words ^ (words >> 15)) * _ODD
    rows = (mixed ^ (mixed >> 13)) * place, (words * place) ^ (words >> 16)
    return jnp.stack(rows).sum(1, dtype=jnp.uint32)


def has_bits(aval: Any) -> bool:
    """Return whether a type is one of numbers or random keys, and not a token, a reference or nothing at all."""
    dtype = getattr(aval, "dtype", None)
    if dtype is None or not hasattr(aval, "shape") or is_ref(aval):
        return False
    return any(jnp.issubdtype(dtype, kind) for kind in (jnp.number, jnp.bool_, jax.dtypes.prng_key))


def plain(value: Any) -> Any:
    """The value itself; of random keys, their data."""
    value = jnp.asarray(value) if not hasattr(value, "dtype") else value
    return jax.random.key_data(value) if jnp.issubdtype(value.dtype, jax.dtypes.prng_key) else value


def _words(value: Any) -> Any:
    value = plain(value)
    if jnp.issubdtype(value.dtype, jnp.bool_):
        return value.ravel().astype(jnp.uint32)
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        value = jnp.stack([value.real, value.imag])
    size = jnp.dtype(value.dtype).itemsize
    if jnp.issubdtype(value.dtype, jnp.integer) and jnp.iinfo(value.dtype).bits < 8:
        return value.ravel().astype(jnp.int32).view(jnp.uint32)
    unsigned = {1: jnp.uint8, 2: jnp.uint16}.get(size, jnp.uint32)
    return lax.bitcast_convert_type(value, unsigned).ravel().astype(jnp.uint32)
