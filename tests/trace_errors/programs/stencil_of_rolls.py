"""A periodic stencil over a field that is sharded along the line, as users write a shift."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[:4]), ("dp",))
line = NamedSharding(mesh, P("dp"))


def shifted(u, by):
    n = u.shape[0]
    return lax.concatenate([lax.pad(u, 0.0, [(by - n, 0, 0)]), lax.pad(u, 0.0, [(0, -by, 0)])], 0)


@jax.jit
def step(u):
    left = shifted(u, 1)
    right = shifted(u, u.shape[0] - 1)
    return u + 0.1 * (left - 2 * u + right)


field = jax.device_put(np.linspace(0, 1, 4, dtype=np.float32), line)
field = step(field)
print(jnp.sum(field))
