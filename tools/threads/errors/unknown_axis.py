# thread: -
# asks: A spec names an axis that the mesh has under another name
# truth: the mesh's name
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("dp", "tp"))
x = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P("data", None)))
w = jax.device_put(jnp.ones((16, 8)), NamedSharding(mesh, P(None, "tp")))
print(jax.jit(jnp.dot)(x, w).sum())
