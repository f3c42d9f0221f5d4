"""Flax NNX: layers by nnx.scan in nnx.jit, with nnx.remat, tensor parallelism by the metadata of the weights."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


class Block(nnx.Module):
    def __init__(self, rngs):
        self.up = nnx.Linear(64, 128, use_bias=False, rngs=rngs)
        self.down = nnx.Linear(128, 64, use_bias=False, rngs=rngs)

    def __call__(self, x):
        return x + self.down(nnx.gelu(self.up(x)))


class Model(nnx.Module):
    def __init__(self, rngs):
        @nnx.split_rngs(splits=3)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def layers(rngs):
            return Block(rngs)

        self.layers = layers(rngs)

    def __call__(self, x):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        @nnx.remat
        def forward(x, layer):
            return layer(x)

        return forward(x, self.layers)


@nnx.jit
def gradient(model, x):
    return nnx.grad(lambda model: jnp.mean(model(x) ** 2))(model)


def gradient_inputs():
    model = Model(nnx.Rngs(0))
    specs = {"up": P(None, None, "model"), "down": P(None, "model", None)}
    for name, spec in specs.items():
        kernel = getattr(model.layers, name).kernel
        kernel[...] = jax.device_put(kernel[...], NamedSharding(mesh, spec))
    return model, jax.device_put(jnp.ones((32, 64)), NamedSharding(mesh, P("data")))
