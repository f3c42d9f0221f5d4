"""Haliax: named axes, hax.named_jit under an axis mapping."""

import jax
import numpy as np
from jax._src.core import is_constant_dim

jax.core.is_constant_dim = is_constant_dim  # which this Haliax looks for where JAX had it

import haliax as hax
import haliax.nn as hnn
from jax.sharding import Mesh

mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))
jax.set_mesh(mesh)
Batch, Embed, Mlp = hax.Axis("batch", 32), hax.Axis("embed", 64), hax.Axis("mlp", 256)
MAPPING = {"batch": "data", "mlp": "model"}


def loss(model, x):
    up, down = model
    return hax.mean(hax.square(down(hax.nn.gelu(up(x))))).scalar()


@hax.named_jit(axis_resources=MAPPING)
def gradient(model, x):
    return jax.grad(loss)(model, x)


def gradient_inputs():
    one, two = jax.random.split(jax.random.PRNGKey(0))
    with hax.axis_mapping(MAPPING):
        model = hax.named_jit(
            lambda: (hnn.Linear.init(Embed, Mlp, key=one), hnn.Linear.init(Mlp, Embed, key=two)),
            axis_resources=MAPPING,
        )()
        x = hax.shard(hax.ones((Batch, Embed)), MAPPING)
    return model, x
