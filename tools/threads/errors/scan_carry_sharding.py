# thread: CMBSciPol/furax#132
# asks: A scan's carry changes its sharding
# truth: reshard the initial carry
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)


@jax.jit
def rnn(xs, w):
    def cell(h, x):
        h = jnp.tanh(h @ w + x)
        return h, None

    h, _ = jax.lax.scan(cell, jnp.zeros((16, 8)), xs)
    return h


xs = jax.device_put(jnp.ones((5, 16, 8)), P(None, "data", None))
print(rnn(xs, jnp.eye(8)).sum())
