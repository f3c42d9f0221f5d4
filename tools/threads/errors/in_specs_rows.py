# thread: -
# asks: An argument of shard_map does not divide
# truth: pad it, and slice the result
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def normalize(block):
    total = jax.lax.psum(jnp.sum(block, axis=0), "x")
    return block / total


f = jax.jit(jax.shard_map(normalize, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
rows = jnp.arange(1.0, 61.0).reshape(20, 3)
print(f(rows))
