"""Rows that are written to a buffer of explicit types at computed places."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("env",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)


@jax.jit
def insert(buffer, rows, position):
    """The buffer with a row for each environment."""
    return buffer.at[jnp.arange(16), position].set(rows)


buffer = jax.device_put(jnp.zeros((16, 4, 2)), P("env"))
buffer = insert(buffer, jax.device_put(jnp.ones((16, 2)), P("env")), jnp.int32(1))
print(buffer.sum())
