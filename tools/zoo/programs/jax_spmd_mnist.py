"""JAX's examples: spmd_mnist_classifier_fromscratch, explicit axes."""

import jax
import jax.numpy as jnp
from checkouts import importable

importable("jax", "jax/examples")

from examples import spmd_mnist_classifier_fromscratch as example
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)
example.step_size = 0.001  # as its main part sets it
train_step = example.train_step


def train_step_inputs():
    params = example.init_random_params(0.1, [784, 1024, 1024, 10])
    rows = NamedSharding(mesh, P("batch"))
    batch = jax.device_put((jnp.ones((128, 784)), jnp.ones((128, 10))), rows)
    return train_step(jax.device_put(params, NamedSharding(mesh, P())), batch), batch
