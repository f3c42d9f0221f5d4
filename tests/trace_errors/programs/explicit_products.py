"""Products of explicit types in a loop, each of which needs the sharding of its result."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("rows",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)


@jax.jit
def descend(x, b):
    def step(x, _):
        r = b - 2 * x
        return x + jnp.vdot(r, r) / (2 * jnp.vdot(r, r) + 1) * r, None

    return jax.lax.scan(step, x, None, length=3)[0]


b = jax.device_put(jnp.arange(16.0), NamedSharding(mesh, P("rows")))
print(descend(jnp.zeros_like(b), b).sum())
