# thread: jax-ml/jax#14465
# asks: Indexing is very slow with a sharded batch
# truth: x[rows, indices] may take any row: with vmap each device has its own
# finds: SS23
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
split = NamedSharding(mesh, P("data"))


@jax.jit
def kept(x, indices):
    rows = jnp.arange(x.shape[0])[:, None]
    return x[rows, indices]


x, indices = jax.device_put((jnp.ones((96, 256, 512)), jnp.zeros((96, 64), jnp.int32)), split)
print(kept(x, indices).sharding)
