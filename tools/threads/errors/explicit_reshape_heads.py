# thread: -
# asks: A reshape splits a sharded dimension
# truth: out_sharding of the reshape
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)


@jax.jit
def heads(x):
    b, t, d = x.shape
    x = x.reshape(b, t, 2, d // 2)
    return x.transpose(0, 2, 1, 3).sum()


x = jax.device_put(jnp.ones((4, 8, 32)), P("data", None, "model"))
print(heads(x))
