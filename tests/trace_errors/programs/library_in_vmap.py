"""A function of JAX's that has no rule for explicit types under vmap."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)


@jax.jit
def tokens(x, edges):
    return jax.vmap(lambda row, own: jnp.searchsorted(own, row))(x, edges).astype(jnp.float32)


x = jax.device_put(jnp.linspace(-1.0, 1.0, 64).reshape(16, 4), NamedSharding(mesh, P("batch")))
edges = jax.device_put(jnp.tile(jnp.array([-0.5, 0.0, 0.5]), (16, 1)), NamedSharding(mesh, P("batch")))
print(tokens(x, edges).sum())
