# thread: patrick-kidger/equinox#815
# asks: Data of different ranks, one sharding
# truth: a spec for each rank
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("dp", "sp"), axis_types=(AxisType.Auto,) * 2)
batch = {"tokens": np.ones((8, 64), np.int32), "targets": np.zeros((8,), np.float32)}
sharding = NamedSharding(mesh, P("dp", "sp"))
batch = jax.tree.map(lambda leaf: jax.device_put(leaf, sharding), batch)


@jax.jit
def loss(batch):
    return jnp.mean((batch["tokens"].sum(-1) - batch["targets"]) ** 2)


print(loss(batch))
