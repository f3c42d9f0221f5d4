"""Flax NNX, toy example 4: its step, with a model as it has when it trains."""

import jax
import numpy as np
import optax
from checkouts import script
from flax import nnx

example = script("flax/examples/nnx_toy_examples/04_data_parallel_with_jit.py")
train_step = example.train_step


def train_step_inputs():
    model = example.MLP(1, 64, 1, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-2), wrt=nnx.Param)
    state = jax.device_put(nnx.state((model, optimizer)), example.model_sharding)
    nnx.update((model, optimizer), state)
    return model, optimizer, *jax.device_put((np.ones((16, 1)), np.ones((16, 1))), example.data_sharding)
