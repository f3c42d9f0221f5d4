"""Keras on JAX: keras.distribution.ModelParallel with a layout map, the trainer's own step."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
from keras import distribution

mesh = distribution.DeviceMesh((4, 2), ["batch", "model"], devices=distribution.list_devices()[:8])
layout = distribution.LayoutMap(mesh)
layout[".*up.*kernel"] = (None, "model")
layout[".*down.*kernel"] = ("model", None)
distribution.set_distribution(distribution.ModelParallel(layout_map=layout, batch_dim_name="batch"))

model = keras.Sequential(
    [
        keras.layers.Input((32,)),
        keras.layers.Dense(128, activation="gelu", name="up"),
        keras.layers.Dense(32, name="down"),
    ]
)
model.compile(optimizer="adam", loss="mse")
model.optimizer.build(model.trainable_variables)


@jax.jit
def train_step(state, x, y):
    trainable, others, slots = state

    def loss(trainable):
        prediction, rest = model.stateless_call(trainable, others, x)
        return jnp.mean(keras.losses.mean_squared_error(y, prediction)), rest

    (value, others), gradients = jax.value_and_grad(loss, has_aux=True)(trainable)
    trainable, slots = model.optimizer.stateless_apply(slots, gradients, trainable)
    return value, (trainable, others, slots)


def train_step_inputs():
    state = ([v.value for v in model.trainable_variables], [v.value for v in model.non_trainable_variables])
    batch = jax.device_put(jnp.ones((16, 32)), distribution.TensorLayout(("batch", None), mesh).backend_layout)
    return (*state, [v.value for v in model.optimizer.variables]), batch, batch
