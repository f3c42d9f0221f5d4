# thread: jax-ml/jax#31795
# asks: The gradient of a lookup with sharded indices
# truth: out_sharding of the lookup, or Auto axes
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(jax.devices()[:8], ("S",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)
sharding = NamedSharding(mesh, P("S"))
tensor = jnp.ones((8, 2))
indices = jax.device_put(jnp.arange(8), sharding)
v = jax.device_put(jnp.ones((8,)), sharding)


def f(tensor, indices):
    return jnp.sum(tensor[indices, :], axis=-1)


out, pullback = jax.vjp(f, tensor, indices)
grad = pullback(v)[0]
print(grad)
