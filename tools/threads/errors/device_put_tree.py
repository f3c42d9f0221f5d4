# thread: jax-ml/jax#8996
# asks: A tree of shardings lacks a key
# truth: add it
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
params = {"dense": {"kernel": jnp.ones((16, 8)), "bias": jnp.zeros((8,))}}
specs = {"dense": {"kernel": NamedSharding(mesh, P(None, "model"))}}
params = jax.device_put(params, specs)
x = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P("data")))
print(jax.jit(lambda p, x: x @ p["dense"]["kernel"] + p["dense"]["bias"])(params, x).sum())
