# thread: -
# asks: psum_scatter of a dimension that does not divide
# truth: pad
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("dp",), axis_types=(AxisType.Auto,))


def reduce(g):
    return jax.lax.psum_scatter(g, "dp", scatter_dimension=0, tiled=True)


f = jax.jit(jax.shard_map(reduce, mesh=mesh, in_specs=P(None, "dp"), out_specs=P("dp")))
print(f(jnp.ones((12, 8))))
