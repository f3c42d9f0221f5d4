"""Equinox: eqx.filter_jit with eqx.filter_shard, the batch over all devices."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Auto,))
batches, everywhere = NamedSharding(mesh, P("batch")), NamedSharding(mesh, P())
optimizer = optax.adam(1e-3)


@eqx.filter_jit(donate="all-except-first")
def train_step(batch, model, state):
    model, state = eqx.filter_shard((model, state), everywhere)
    x, y = eqx.filter_shard(batch, batches)
    loss, gradients = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
    updates, state = optimizer.update(gradients, state, eqx.filter(model, eqx.is_array))
    model = eqx.apply_updates(model, updates)
    model, state = eqx.filter_shard((model, state), everywhere)
    return loss, model, state


def train_step_inputs():
    model = eqx.nn.MLP(16, 4, 64, 2, key=jax.random.key(0))
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    model, state = eqx.filter_shard((model, state), everywhere)
    x, y = eqx.filter_shard((jnp.ones((64, 16)), jnp.ones((64, 4))), batches)
    return (x, y), model, state
