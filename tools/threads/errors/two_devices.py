# thread: Physical-Intelligence/openpi#261
# asks: Parameters on one device, data on all
# truth: put the parameters on the mesh
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(8), ("dp",))
params = jax.device_put({"w": jnp.ones((8, 4)), "b": jnp.zeros((4,))}, jax.devices()[0])
x = jax.device_put(jnp.ones((16, 8)), NamedSharding(mesh, P("dp")))


@jax.jit
def forward(params, x):
    return x @ params["w"] + params["b"]


print(forward(params, x).sum())
