"""Products that some devices repeat, enough of all to be said, or too little."""

import jax
import jax.numpy as jnp
from jax import NamedSharding, lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def large(a, w):
    """A product that counts, and one beside it that is shared."""
    rows = lax.with_sharding_constraint(a, NamedSharding(mesh, P("x")))
    every = lax.with_sharding_constraint(a + 1, NamedSharding(mesh, P(("x", "y"))))
    return rows @ w, every @ w


def small(a, w):
    """The same, too little to be said."""
    return large(a[:32, :32], w[:32, :32])


inputs = tuple(jax.device_put(jnp.ones((256, 256)), NamedSharding(mesh, P())) for _ in range(2))
