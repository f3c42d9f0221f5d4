# thread: keras-team/keras#18681
# asks: Two meshes in different device orders
# truth: one order of devices
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

model_mesh = Mesh(mesh_utils.create_device_mesh((4, 2)), ("data", "model"))
data_mesh = Mesh(np.array(jax.devices()[::-1]), ("data",))
w = jax.device_put(jnp.ones((16, 8)), NamedSharding(model_mesh, P(None, "model")))
x = jax.device_put(jnp.ones((32, 16)), NamedSharding(data_mesh, P("data")))
print(jax.jit(lambda w, x: (x @ w).mean())(w, x))
