# thread: -
# asks: A cache is updated with a differently sharded slice
# truth: reshard the slice
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)


@jax.jit
def write(cache, new, index):
    return jax.lax.dynamic_update_slice(cache, new, (0, index, 0))


cache = jax.device_put(jnp.zeros((8, 32, 4)), P("data", None, None))
new = jnp.ones((8, 1, 4))
print(write(cache, new, 3).sum())
