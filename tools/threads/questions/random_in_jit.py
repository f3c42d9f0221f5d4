# thread: jax-ml/jax#14559
# asks: Random numbers for dropout are slow under jit with a sharded batch
# truth: jax_threefry_partitionable, which is on by default since JAX 0.5
# finds: nothing
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


@jax.jit
def dropout(x, key):
    return jnp.where(jax.random.uniform(key, x.shape) < 0.9, x / 0.9, 0.0)


x = jax.device_put(jnp.ones((96, 256, 64)), NamedSharding(mesh, P("data")))
print(dropout(x, jax.random.key(0)).sharding)
