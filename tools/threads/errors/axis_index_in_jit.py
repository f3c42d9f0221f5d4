# thread: jax-ml/jax#28666
# asks: psum under jit
# truth: leave it out: values are global
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(8), ("batch",))


def center(x):
    total = jax.lax.psum(x.sum(axis=0), "batch")
    count = jax.lax.psum(x.shape[0], "batch")
    return x - total / count


x = jax.device_put(jnp.arange(32.0).reshape(16, 2), NamedSharding(mesh, P("batch")))
print(jax.jit(center)(x))
