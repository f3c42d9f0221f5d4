# thread: -
# asks: A loss leaves shard_map without a reduction
# truth: pmean
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("dp",), axis_types=(AxisType.Auto,))


def loss_fn(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


step = jax.shard_map(loss_fn, mesh=mesh, in_specs=(P(), P("dp"), P("dp")), out_specs=P())
x, y = jnp.arange(64.0).reshape(16, 4) / 64, jnp.ones((16,))
print(jax.jit(step)(jnp.zeros((4,)), x, y))
