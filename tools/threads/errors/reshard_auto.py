# thread: -
# asks: reshard over Auto axes
# truth: with_sharding_constraint
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(8), ("data",))


@jax.jit
def f(x):
    y = jnp.sin(x)
    return jax.sharding.reshard(y, NamedSharding(mesh, P(None, "data")))


x = jax.device_put(jnp.ones((16, 8)), NamedSharding(mesh, P("data")))
print(f(x).sum())
