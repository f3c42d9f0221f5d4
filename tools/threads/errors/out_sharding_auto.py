# thread: jax-ml/jax#30095
# asks: out_sharding over Auto axes
# truth: with_sharding_constraint, or Explicit axes
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
jax.set_mesh(mesh)


@jax.jit
def project(x, w):
    return jnp.einsum("bd,df->bf", x, w, out_sharding=P("data", "model"))


x = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P("data")))
w = jax.device_put(jnp.ones((16, 32)), NamedSharding(mesh, P(None, "model")))
print(project(x, w).sum())
