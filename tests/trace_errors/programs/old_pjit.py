from functools import partial

import jax
import jax.numpy as jnp
from jax.config import config
from jax.experimental import maps, mesh_utils
from jax.experimental.pjit import PartitionSpec as P
from jax.experimental.pjit import pjit, with_sharding_constraint

config.update("jax_enable_x64", False)
mesh = maps.Mesh(mesh_utils.create_device_mesh((2, 4)), ("dp", "mp"))
specs = {"w1": P(None, "mp"), "w2": P("mp", None)}


def init(key: jax.random.KeyArray):
    return {"w1": jax.random.normal(key, (32, 64)), "w2": jax.random.normal(key, (64, 32))}


def loss(params, x):
    h = with_sharding_constraint(jnp.tanh(x @ params["w1"]), P("dp", "mp"))
    return jnp.trapz(jnp.mean((h @ params["w2"]) ** 2, axis=1))


@partial(pjit, in_axis_resources=(specs, P("dp")), out_axis_resources=(specs, None))
def step(params, x):
    value, gradients = jax.value_and_grad(loss)(params, x)
    return jax.tree_map(lambda p, g: p - 0.1 * g, params, gradients), value


with mesh:
    params, value = step(init(jax.random.PRNGKey(0)), jnp.ones((16, 32)))
    print(float(value), jax.tree_leaves(params)[0].device_buffers[0].shape)
