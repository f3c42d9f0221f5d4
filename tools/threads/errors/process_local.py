# thread: ray-project/ray#59842
# asks: Process-local data of another size
# truth: another size, or fewer devices
import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Auto,))
sharding = NamedSharding(mesh, P("batch"))
local = np.arange(12 * 4, dtype=np.float32).reshape(12, 4)
x = jax.make_array_from_process_local_data(sharding, local)


@jax.jit
def f(x):
    return (x * 2).sum(axis=1)


print(f(x))
