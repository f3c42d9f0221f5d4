"""Optax: Muon, whose orthogonalization multiplies whole gradients, on weights in blocks."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("fsdp", "tp"), axis_types=(AxisType.Auto,) * 2)
optimizer = optax.contrib.muon(1e-3)


def loss(params, x):
    return jnp.mean((jax.nn.gelu(x @ params["up"]) @ params["down"]) ** 2)


@jax.jit
def train_step(params, state, x):
    updates, state = optimizer.update(jax.grad(loss)(params, x), state, params)
    return optax.apply_updates(params, updates), state


def train_step_inputs():
    blocks = {"up": NamedSharding(mesh, P("fsdp", "tp")), "down": NamedSharding(mesh, P("tp", "fsdp"))}
    params = jax.device_put({"up": jnp.ones((64, 128)), "down": jnp.ones((128, 64))}, blocks)
    state = jax.jit(optimizer.init)(params)
    return params, state, jax.device_put(jnp.ones((16, 64)), NamedSharding(mesh, P("fsdp")))
