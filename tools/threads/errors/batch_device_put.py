# thread: Physical-Intelligence/openpi#607
# asks: A batch does not divide the devices of its mesh axis
# truth: a smaller mesh, another batch size, or padding
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(8), ("dp",))
batch_size = 30
x = np.random.default_rng(0).normal(size=(batch_size, 16)).astype(np.float32)
w = jnp.ones((16, 4)) * 0.1


@jax.jit
def predict(w, x):
    return jnp.tanh(x @ w)


x = jax.device_put(x, NamedSharding(mesh, P("dp")))
out = predict(w, x)
print(out.sum())
