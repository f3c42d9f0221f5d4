"""A batch of the host, split by a constraint in the step, over explicit axes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,))
by_rows = NamedSharding(mesh, PartitionSpec("data"))


@jax.jit
def step(w, x):
    x = jax.lax.with_sharding_constraint(x, by_rows)
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


w = jax.device_put(jnp.ones((4, 2)), NamedSharding(mesh, PartitionSpec()))
print(step(w, jnp.asarray(np.arange(64.0).reshape(16, 4), jnp.float32)))
