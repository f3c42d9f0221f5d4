"""Keras on JAX: the step of `fit` under DataParallel, for the model of Keras' own test."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import numpy as np
from checkouts import importable

importable("keras")

from keras import distribution, layers, models

distribution.set_distribution(distribution.DataParallel())
given = layers.Input(shape=[28, 28, 1])
y = layers.Dense(units=200, use_bias=False, activation="relu")(layers.Flatten()(given))
y = layers.Dense(units=10, activation="softmax")(layers.Dropout(0.4)(y))
model = models.Model(inputs=given, outputs=y)
model.compile(loss="mse")
rows = (np.random.normal(size=(8, 28, 28, 1)), np.random.normal(size=(8, 10)))
model.fit(*rows, batch_size=8, verbose=0)
train_step = jax.jit(model.train_step, donate_argnums=0, out_shardings=(None, model._get_state_sharding_spec()))


def train_step_inputs():
    wanted = ("trainable", "non_trainable", "optimizer", "metrics")
    state = model._get_jax_state(**{f"{name}_variables": True for name in wanted})
    layouts = [distribution.distribution().get_data_layout(each.shape).backend_layout for each in rows]
    return tuple(state), jax.device_put(tuple(each.astype("float32") for each in rows), tuple(layouts))
