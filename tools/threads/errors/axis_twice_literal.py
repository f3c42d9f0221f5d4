# thread: -
# asks: A mesh axis occurs twice in a spec
# truth: one of the dimensions stays whole
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
x = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P("data", None)))
w = jax.device_put(jnp.ones((16, 16)), NamedSharding(mesh, P("model", "model")))


@jax.jit
def f(x, w):
    return x @ w


print(f(x, w).sum())
