import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def put(array, *names):
    return jax.device_put(array, NamedSharding(mesh, P(*names)))


rows = put(jnp.ones((9, 4)), "data", None)
bias = put(jnp.ones(8), "model", None)
weights = put(jnp.ones((8, 8)), "model", "model")
print(jnp.sum(rows), jnp.sum(bias @ weights))
