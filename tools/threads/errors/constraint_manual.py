# thread: NVIDIA/TransformerEngine#2069
# asks: A constraint over manual axes
# truth: leave it out in shard_map
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def block(x, w):
    h = x @ w
    h = jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P("data", "model")))
    return jax.lax.pmean(h.sum(), ("data", "model"))


f = jax.jit(jax.shard_map(block, mesh=mesh, in_specs=(P("data"), P(None, "model")), out_specs=P()))
print(f(jnp.ones((8, 16)), jnp.ones((16, 4))))
