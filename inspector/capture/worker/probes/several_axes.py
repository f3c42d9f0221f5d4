"""Collectives over several axes among blocks on one device, one axis after the other: JAX maps them over one only."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax


def all_gather(value: Any, axes: Any, dimension: int = 0, *, tiled: bool = False) -> Any:
    """All blocks along the axes, the last one the fastest."""
    value = value if tiled else jnp.expand_dims(value, dimension)
    for axis in reversed(_named(axes)):
        value = lax.all_gather(value, axis, axis=dimension, tiled=True)
    return value


def psum_scatter(value: Any, axes: Any, dimension: int = 0, *, tiled: bool = False) -> Any:
    """The own block of a sum."""
    for axis in _named(axes):
        value = lax.psum_scatter(value, axis, scatter_dimension=dimension, tiled=True)
    return value if tiled else jnp.squeeze(value, dimension)


def _named(axes: Any) -> tuple[Any, ...]:
    return tuple(axes) if isinstance(axes, tuple | list) else (axes,)
