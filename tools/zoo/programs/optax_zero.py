"""Optax: the state of adam over all devices where the weights are replicated (ZeRO-1), with clipping by norm."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())


def loss(params, x):
    for w in params:
        x = jnp.tanh(x @ w)
    return jnp.mean(x**2)


@jax.jit
def train_step(params, state, x):
    gradients = jax.grad(loss)(params, x)
    updates, state = optimizer.update(gradients, state, params)
    params = optax.apply_updates(params, updates)
    return jax.lax.with_sharding_constraint(params, everywhere), state


def train_step_inputs():
    params = jax.device_put([jnp.ones((64, 64))] * 3, everywhere)
    state = jax.tree.map(lambda v: jax.device_put(v, rows if v.ndim else everywhere), optimizer.init(params))
    return params, state, jax.device_put(jnp.ones((32, 64)), rows)
