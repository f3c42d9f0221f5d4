# thread: google/flax#2938
# asks: with_sharding_constraint takes a spec, and no mesh is set
# truth: NamedSharding, or set_mesh
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


@jax.jit
def layer(w, x):
    h = x @ w
    h = jax.lax.with_sharding_constraint(h, P("data", "model"))
    return jnp.tanh(h)


w = jax.device_put(jnp.ones((16, 32)), NamedSharding(mesh, P(None, "model")))
x = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P("data", None)))
print(layer(w, x).sum())
