# thread: jax-ml/jax#29839
# asks: vmap of a library function over a sharded argument and another
# truth: shard the other one as well
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)


@jax.jit
def resample(images):
    def one(image, shift):
        grid = jnp.meshgrid(jnp.arange(8.0) + shift, jnp.arange(8.0), indexing="ij")
        return jax.scipy.ndimage.map_coordinates(image, grid, order=1)

    return jax.vmap(one)(images, jnp.linspace(0.0, 1.0, 16))


images = jax.device_put(jnp.arange(16 * 64.0).reshape(16, 8, 8), P("data"))
print(resample(images).sum())
