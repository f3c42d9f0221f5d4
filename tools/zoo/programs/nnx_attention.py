"""nnx.MultiHeadAttention, its heads over one axis and the batch over the other."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


class Encoder(nnx.Module):
    def __init__(self, rngs):
        self.attention = nnx.MultiHeadAttention(8, 64, decode=False, rngs=rngs)
        self.mlp = nnx.Sequential(nnx.Linear(64, 256, rngs=rngs), nnx.relu, nnx.Linear(256, 64, rngs=rngs))

    def __call__(self, x):
        x = x + self.attention(x)
        return x + self.mlp(x)


def spec(path, value):
    text = jax.tree_util.keystr(path)
    if "kernel" not in text:
        return P()
    if "out" in text or "layers'][2" in text or "layers[2" in text:
        return P("model")
    return P(None, "model")


@nnx.jit
def loss(model, x):
    return nnx.value_and_grad(lambda model: jnp.mean(model(x) ** 2))(model)


def loss_inputs():
    model = Encoder(nnx.Rngs(0))
    state = nnx.state(model)
    placed = jax.tree_util.tree_map_with_path(
        lambda path, value: jax.device_put(value, NamedSharding(mesh, spec(path, value))), state
    )
    nnx.update(model, placed)
    return model, jax.device_put(jnp.ones((8, 16, 64)), NamedSharding(mesh, P("data")))
