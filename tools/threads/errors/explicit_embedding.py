# thread: marin-community/marin#2288
# asks: A lookup in a sharded table
# truth: out_sharding of the lookup
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)


@jax.jit
def embed(table, tokens):
    x = table[tokens]
    return x * jnp.sqrt(32.0)


table = jax.device_put(jnp.arange(64 * 32.0).reshape(64, 32), P("model", None))
tokens = jax.device_put(jnp.arange(8 * 16).reshape(8, 16) % 64, P("data", None))
print(embed(table, tokens).sum())
