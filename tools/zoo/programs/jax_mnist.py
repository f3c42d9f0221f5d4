"""JAX's examples: MNIST from scratch, its step as the main part makes it."""

import jax
import jax.numpy as jnp
from checkouts import importable

importable("jax")

from examples import mnist_classifier_fromscratch as example


@jax.jit
def update(params, batch):
    grads = jax.grad(example.loss)(params, batch)
    return [(w - 0.001 * dw, b - 0.001 * db) for (w, b), (dw, db) in zip(params, grads, strict=True)]


def update_inputs():
    params = jax.tree.map(jnp.asarray, example.init_random_params(0.1, [784, 1024, 1024, 10]))
    return params, (jnp.ones((128, 784)), jnp.ones((128, 10)))
