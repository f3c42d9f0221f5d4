# thread: jax-ml/jax#28542
# asks: Indexing the unsharded dimension of a sharded array with computed indices
# truth: out_sharding that keeps the rows sharded
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("S",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)
a = jnp.zeros((8, 3), device=NamedSharding(mesh, P("S", None)))
columns = jax.device_put(jnp.arange(8) % 3, P("S"))
print(a[jnp.arange(8), columns].sum())
