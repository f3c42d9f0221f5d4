# thread: jax-ml/jax#9675
# asks: A donated array is used again
# truth: donate nothing, or use the result
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(8), ("dp",))
params = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P()))
x = jax.device_put(jnp.arange(128.0).reshape(16, 8) / 128, NamedSharding(mesh, P("dp")))


@partial(jax.jit, donate_argnums=(0,))
def train_step(params, x):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((x @ p) ** 2))(params)
    return params - 0.1 * grads, loss


new_params, loss = train_step(params, x)
print("loss", loss, "change", jnp.abs(new_params - params).max())
