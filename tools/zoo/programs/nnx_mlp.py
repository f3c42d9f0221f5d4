"""Data parallelism with nnx.Optimizer, and tensor parallelism by the metadata of nnx.Param."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


class Block(nnx.Module):
    def __init__(self, width, hidden, rngs):
        columns = nnx.with_partitioning(nnx.initializers.lecun_normal(), (None, "model"))
        rows = nnx.with_partitioning(nnx.initializers.lecun_normal(), ("model", None))
        self.up = nnx.Linear(width, hidden, kernel_init=columns, use_bias=False, rngs=rngs)
        self.down = nnx.Linear(hidden, width, kernel_init=rows, use_bias=False, rngs=rngs)
        self.norm = nnx.LayerNorm(width, rngs=rngs)

    def __call__(self, x):
        return x + self.down(nnx.gelu(self.up(self.norm(x))))


class Model(nnx.Module):
    def __init__(self, rngs):
        self.first, self.second = Block(64, 256, rngs), Block(64, 256, rngs)

    def __call__(self, x):
        return self.second(self.first(x))


@nnx.jit
def create():
    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
    state = nnx.state((model, optimizer))
    nnx.update((model, optimizer), jax.lax.with_sharding_constraint(state, nnx.get_named_sharding(state, mesh)))
    return model, optimizer


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
    optimizer.update(model, gradients)
    return loss


def train_step_inputs():
    with jax.set_mesh(mesh):
        model, optimizer = create()
    batch = jax.device_put(jnp.ones((32, 64)), NamedSharding(mesh, P("data")))
    return model, optimizer, batch, batch
