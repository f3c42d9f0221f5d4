import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

params = jax.device_put_replicated({"w": jnp.ones((4, 4)), "b": jnp.zeros(4)}, jax.local_devices())
batch = np.random.RandomState(0).randn(jax.device_count(), 2, 4).astype(np.float32)
xs = jax.device_put_sharded(list(batch), jax.devices())


@functools.partial(jax.pmap, axis_name="batch")
def update(params, x):
    gradients = jax.grad(lambda p: jnp.mean((x @ p["w"] + p["b"]) ** 2))(params)
    return jax.tree_util.tree_multimap(lambda p, g: p - 0.1 * g, params, lax.pmean(gradients, "batch"))


params = update(params, xs)
print(params["w"].device_buffer.device(), jnp.clip(params["b"][0], a_min=-1, a_max=1))
