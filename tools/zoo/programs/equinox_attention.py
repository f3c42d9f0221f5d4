"""Equinox: eqx.nn.MultiheadAttention with its projections over one axis."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


class Block(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    mlp: eqx.nn.MLP

    def __init__(self, key):
        one, two = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(8, 64, key=one)
        self.mlp = eqx.nn.MLP(64, 64, 256, 1, key=two)

    def __call__(self, x):
        x = x + self.attention(x, x, x)
        return x + jax.vmap(self.mlp)(x)


@eqx.filter_jit
def gradient(model, x):
    return eqx.filter_grad(lambda model: jnp.mean(jax.vmap(model)(x) ** 2))(model)


def gradient_inputs():
    model = Block(jax.random.key(0))

    def placed(path, value):
        if not eqx.is_array(value):
            return value
        rows = value.ndim == 2 and "output_proj" not in jax.tree_util.keystr(path)
        return jax.device_put(value, NamedSharding(mesh, P("model") if rows else P()))

    model = jax.tree_util.tree_map_with_path(placed, model)
    return model, jax.device_put(jnp.ones((4, 16, 64)), NamedSharding(mesh, P("data")))
