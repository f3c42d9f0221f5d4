"""Optax: gradients of several batches by optax.MultiSteps, clipped by their global norm, on one batch axis."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Auto,))
optimizer = optax.MultiSteps(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3)), every_k_schedule=4)


@jax.jit
def train_step(params, state, x, y):
    def loss(params):
        hidden = jnp.tanh(x @ params["w1"] + params["b1"])
        return optax.l2_loss(hidden @ params["w2"], y).mean()

    value, gradients = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(gradients, state, params)
    return value, optax.apply_updates(params, updates), state


def train_step_inputs():
    params = {"w1": jnp.ones((16, 64)), "b1": jnp.ones(64), "w2": jnp.ones((64, 8))}
    everywhere = NamedSharding(mesh, P())
    params, state = jax.device_put((params, optimizer.init(params)), everywhere)
    x, y = jax.device_put((jnp.ones((64, 16)), jnp.ones((64, 8))), NamedSharding(mesh, P("batch")))
    return params, state, x, y
