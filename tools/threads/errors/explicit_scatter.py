# thread: jax-ml/jax#28111
# asks: A scatter of sharded updates
# truth: out_sharding of the scatter
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)


@jax.jit
def histogram(ids, weights):
    counts = jnp.zeros((32,))
    return counts.at[ids].add(weights)


ids = jax.device_put(jnp.arange(64) % 32, P("data"))
weights = jax.device_put(jnp.ones((64,)), P("data"))
print(histogram(ids, weights))
