# thread: google/flax#3303
# asks: in_shardings take specs, and no mesh is set
# truth: NamedSharding, or set_mesh
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(8), ("batch",))


def apply(params, x):
    return jnp.dot(x, params)


apply = jax.jit(apply, in_shardings=(P(), P("batch")), out_shardings=P("batch"))
print(apply(jnp.ones((8, 8)), jnp.ones((16, 8))).shape)
