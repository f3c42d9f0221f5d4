"""A state that is a dataclass, and the shardings of its parameters alone."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("fsdp",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("fsdp"))


@jax.tree_util.register_dataclass
@dataclass
class State:
    """What is trained."""

    params: dict
    momentum: dict


def train_step(state, x):
    """A step of gradient descent."""
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(state.params)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state.momentum, grads)
    return State(jax.tree.map(lambda p, m: p - 0.1 * m, state.params, momentum), momentum), loss


shardings = {"w": rows}
step = jax.jit(train_step, in_shardings=(shardings, rows), out_shardings=(shardings, None))
params = jax.device_put({"w": jnp.ones((16, 4))}, shardings)
state = State(params, jax.tree.map(jnp.zeros_like, params))
for _ in range(2):
    state, loss = step(state, jax.device_put(jnp.ones((8, 16)), rows))
    print(loss)
