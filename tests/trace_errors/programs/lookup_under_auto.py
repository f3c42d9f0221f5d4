import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("dp", "tp"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


@jax.jit
def embed(table, ids):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("dp", None, "tp")))


table = jax.device_put(jnp.ones((128, 64)), NamedSharding(mesh, P(None, "tp")))
ids = jax.device_put(jnp.ones((8, 16), jnp.int32), NamedSharding(mesh, P("dp", None)))
print(embed(table, ids).sum())
