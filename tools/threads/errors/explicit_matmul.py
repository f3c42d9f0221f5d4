# thread: -
# asks: A product sums over a sharded dimension
# truth: out_sharding that keeps the batch
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("dp", "tp"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)


@jax.jit
def mlp(x, w1, w2):
    h = jax.nn.relu(x @ w1)
    return h @ w2


x = jax.device_put(jnp.ones((16, 32)), P("dp", None))
w1 = jax.device_put(jnp.ones((32, 64)), P(None, "tp"))
w2 = jax.device_put(jnp.ones((64, 32)), P("tp", None))
print(mlp(x, w1, w2).sum())
