# thread: jax-ml/jax#20683
# asks: vmap of fft and of cholesky gathers the batch
# truth: not with the partitioner of today
# finds: nothing
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
split = NamedSharding(mesh, P("i"))
x = jax.device_put(jnp.stack([jnp.eye(32)] * 16), split)
print(jax.jit(jax.vmap(jnp.fft.fft))(x).sharding, jax.jit(jax.vmap(jnp.linalg.cholesky))(x).sharding)
