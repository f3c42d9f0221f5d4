# thread: jax-ml/jax#36886
# asks: Per-sample gradients in a shard_map differ from those of vmap
# truth: parameters are the same on all devices, so JAX sums their gradient: pcast them, or check_vma=False
# finds: SS40
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("devices",), axis_types=(AxisType.Auto,))
params = jnp.array([1.0, 2.0])
samples = jnp.arange(32.0).reshape(16, 2)


def gradient(x):
    return jax.grad(lambda p, y: jnp.dot(p, y))(params, x)


print(jax.vmap(gradient)(samples))
sharded = jax.shard_map(jax.vmap(gradient), mesh=mesh, in_specs=P("devices"), out_specs=P("devices"))
print(jax.jit(sharded)(samples))
