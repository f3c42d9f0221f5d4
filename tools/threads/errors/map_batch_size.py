# thread: jax-ml/jax#29195
# asks: lax.map with a batch_size over an argument with explicit axes
# truth: a gather inside of the library: Auto axes, or no batch_size
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("s",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)


def simple_func(w, x):
    return jnp.sum(w * x, axis=-1)


w = jnp.array([1.0, 2.0, 3.0, 4.0])
x = jax.sharding.reshard(jnp.ones((5, 8, 4)), P(None, "s", None))
out = jax.lax.map(lambda row: simple_func(w, row), x, batch_size=2)
print(out.sum())
