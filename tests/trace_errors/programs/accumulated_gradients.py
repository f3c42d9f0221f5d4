"""Gradients of explicit types that are added up in a loop, which starts with zeros of the same shapes only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)


def loss_fn(params, x):
    """The mean of the squares."""
    h = jnp.tanh(jnp.einsum("bd,df->bf", x, params["up"]))
    return jnp.mean(jnp.einsum("bf,fd->bd", h, params["down"], out_sharding=P("data", None)) ** 2)


@jax.jit
def gradients(params, micro):
    """The sum over all microbatches."""

    def body(carry, x):
        total, grads = carry
        loss, more = jax.value_and_grad(loss_fn)(params, x)
        return (total + loss, jax.tree.map(jnp.add, grads, more)), None

    zeros = jax.tree.map(lambda p: jnp.zeros(p.shape), params)
    (total, grads), _ = jax.lax.scan(body, (0.0, zeros), micro)
    return total, grads


params = {
    "up": jax.device_put(jnp.linspace(-1, 1, 128).reshape(8, 16), P(None, "model")),
    "down": jax.device_put(jnp.linspace(1, -1, 128).reshape(16, 8), P("model", None)),
}
micro = jax.device_put(jnp.linspace(0, 1, 256).reshape(4, 8, 8), P(None, "data"))
print(gradients(params, micro)[0])
