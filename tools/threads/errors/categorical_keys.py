# thread: jax-ml/jax#36562
# asks: vmap of a sampler over sharded keys and logits
# truth: shard both in the mapped dimension, logits only there
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)
keys = jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(mesh, P("data")))
logits = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P(None, "model")))


@jax.jit
def sample(keys, logits):
    return jax.vmap(jax.random.categorical)(keys, logits)


print(sample(keys, logits))
