# thread: -
# asks: Cases of where are sharded differently
# truth: reshard one of them
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)


@jax.jit
def masked(x, y, keep):
    return jnp.where(keep, x, y).sum()


x = jax.device_put(jnp.ones((8, 16)), P("data", None))
y = jax.device_put(jnp.zeros((8, 16)), P(None, "model"))
keep = jax.device_put(jnp.ones((8, 16), bool), P("data", None))
print(masked(x, y, keep))
