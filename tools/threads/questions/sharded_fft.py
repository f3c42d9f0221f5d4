# thread: jax-ml/jax#15680
# asks: fft over the unsharded dimension copies the whole array to each device
# truth: not with the partitioner of today
# finds: nothing
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("d", None))
transformed = jax.jit(lambda a: jnp.fft.fft(a, n=4096, axis=1), in_shardings=rows, out_shardings=rows)
print(transformed(jax.device_put(jnp.ones((1000, 1000)), rows)).shape)
