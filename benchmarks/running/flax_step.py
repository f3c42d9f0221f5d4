"""A training step of a Flax model, as `nnx.jit` takes it: tensor-parallel MLPs, the batch sharded over `data`."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

WIDTH, HIDDEN, LAYERS = 256, 1024, 4
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))


def sharded(*axes):
    return nnx.with_partitioning(nnx.initializers.lecun_normal(), axes)


class Block(nnx.Module):
    def __init__(self, rngs):
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, HIDDEN, kernel_init=sharded(None, "model"), rngs=rngs)
        self.down = nnx.Linear(HIDDEN, WIDTH, kernel_init=sharded("model", None), rngs=rngs)

    def __call__(self, x):
        return x + self.down(nnx.gelu(self.up(self.norm(x))))


class Model(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([Block(rngs) for _ in range(LAYERS)])

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@nnx.jit
def step(model, optimizer, x, y):
    loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
    optimizer.update(model, gradients)
    return loss


@nnx.jit
def create():
    model = Model(nnx.Rngs(0))
    state = nnx.state(model)
    nnx.update(model, jax.lax.with_sharding_constraint(state, nnx.get_named_sharding(state, mesh)))
    return model


def step_inputs():
    with jax.set_mesh(mesh):
        model = create()
    batch = jax.device_put(jnp.ones((64, WIDTH)), NamedSharding(mesh, P("data")))
    return model, nnx.Optimizer(model, optax.sgd(1e-3), wrt=nnx.Param), batch, batch
