"""Flax Linen: layers by nn.scan over nn.remat, their weights sharded over the batch's axis (FSDP)."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
batches = NamedSharding(mesh, P("data"))


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        x = jax.lax.with_sharding_constraint(x, batches)
        return x + nn.Dense(64, use_bias=False)(nn.gelu(nn.Dense(128, use_bias=False)(x))), None


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        layers = nn.scan(nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
        return layers()(x, None)[0]


model = Model()


@jax.jit
def gradient(params, x):
    grads = jax.grad(lambda params: jnp.mean(model.apply(params, x) ** 2))(params)
    return jax.tree.map(lambda g, p: jax.lax.with_sharding_constraint(g, NamedSharding(mesh, fsdp(p))), grads, params)


def fsdp(weight):
    return P(None, "data") if weight.ndim == 3 else P()


def gradient_inputs():
    x = jax.ShapeDtypeStruct((32, 64), jnp.float32, sharding=batches)
    shapes = jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((32, 64)))
    on = lambda w: jax.ShapeDtypeStruct(w.shape, w.dtype, sharding=NamedSharding(mesh, fsdp(w)))
    return jax.tree.map(on, shapes), x
