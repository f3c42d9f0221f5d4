import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
x = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P("data", "model")))
w = jax.device_put(jnp.ones((16, 4)), NamedSharding(mesh, P("model", None)))


@jax.jit
def layer(x, w):
    return jnp.einsum("bd,df->bf", jnp.tanh(x), w) + jnp.einsum("bd, df -> bf", x, w)


print(jnp.sum(layer(x, w)))
