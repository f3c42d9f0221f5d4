"""Tokamax: its dot_product_attention, by XLA, heads over one axis."""

import jax
import jax.numpy as jnp
import tokamax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


@jax.jit
def gradient(wo, q, k, v):
    def loss(wo):
        y = tokamax.dot_product_attention(q, k, v, is_causal=True, implementation="xla")
        return jnp.mean(jnp.einsum("bthd,hde->bte", y, wo) ** 2)

    return jax.grad(loss)(wo)


def gradient_inputs():
    qkv = jax.device_put(jnp.ones((4, 32, 8, 16)), NamedSharding(mesh, P("data", None, "model")))
    return jax.device_put(jnp.ones((8, 16, 64)), NamedSharding(mesh, P("model"))), qkv, qkv, qkv
