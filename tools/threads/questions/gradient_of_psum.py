# thread: jax-ml/jax#3970
# asks: The gradient of a psum of losses is too large by the number of devices
# truth: psum is transposed to psum: check_vma=True, or the gradient of the device's own loss
# finds: SS03
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Auto,))


def step(w, data):
    def loss(w):
        return jax.lax.psum(jnp.sum((w**2 + 1) * data), "batch")

    return loss(w), jax.lax.psum(jax.grad(loss)(w), "batch")


specs = {"in_specs": (P(), P("batch")), "out_specs": (P(), P())}
f = jax.jit(jax.shard_map(step, mesh=mesh, check_vma=False, **specs))
print(f(1.0, jnp.arange(8.0)))
