# thread: jax-ml/jax#31918
# asks: A nonlinear operation of partial sums
# truth: reduce first, and keep the batch
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("dp", "tp"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)


@jax.jit
def f(x, w):
    h = jnp.einsum("bd,df->bf", x, w, out_sharding=P("dp", None, unreduced={"tp"}))
    return jnp.tanh(h).sum()


x = jax.device_put(jnp.ones((8, 16)), P("dp", "tp"))
w = jax.device_put(jnp.ones((16, 4)), P("tp", None))
print(f(x, w))
