"""Bonsai: a vision transformer in NNX, the batch over all devices."""

import jax
import jax.numpy as jnp
from checkouts import importable
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

importable("bonsai")

from bonsai.models.vit import modeling

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


@nnx.jit
def gradient(model, images):
    return nnx.grad(lambda model: jnp.mean(model(images, rngs=None) ** 2))(model)


def gradient_inputs():
    model = modeling.ViTClassificationModel(modeling.ModelConfig.vit_p16_224(), rngs=nnx.Rngs(0))
    return model, jax.device_put(jnp.ones((8, 224, 224, 3)), NamedSharding(mesh, P("data")))
