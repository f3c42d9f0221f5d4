# thread: jax-ml/jax#21403
# asks: cumsum over a sharded dimension
# truth: each device gets all of it: leave the constraint out, or sum in parts
# finds: SS23
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("dp", "sp"), axis_types=(AxisType.Auto,) * 2)
whole = NamedSharding(mesh, P())


def positions(mask):
    mask = jax.lax.with_sharding_constraint(mask, NamedSharding(mesh, P("dp", "sp")))
    return jnp.cumsum(mask, axis=-1)


f = jax.jit(positions, in_shardings=whole, out_shardings=whole)
print(f(jnp.ones((8, 1024), jnp.int32))[0, -1])
