"""A training loop of Flax NNX."""

import functools

import jax.numpy as jnp
import optax
from flax import nnx


class Model(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(4, 8, rngs=rngs)
        self.second = nnx.Linear(8, 2, rngs=rngs)

    def __call__(self, x):
        return self.second(nnx.relu(self.first(x)))


@nnx.jit
def train_step(model, optimizer, x):
    loss, gradients = nnx.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
    optimizer.update(model, gradients)
    return loss


def evaluate(model, x, *, scale):
    return model(x).sum() * scale


evaluate_jitted = nnx.jit(functools.partial(evaluate, scale=2.0))


model = Model(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
x = jnp.ones((2, 4))
for _ in range(5):
    train_step(model, optimizer, x)
for _ in range(3):
    evaluate_jitted(model, x)
