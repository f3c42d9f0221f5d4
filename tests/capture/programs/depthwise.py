"""A step of layers with a depthwise convolution, whose gradient the partitioner sums over too many devices.

Its batch is sharded over one axis of a mesh of two (JAX 0.10 to 0.12).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))


def forward(params, x):
    for layer in params["layers"]:
        x = x + jnp.tanh(x @ layer["w"] + layer["b"])
    dimensions = ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(
        x, params["kernel"], (1, 1), "SAME", dimension_numbers=dimensions, feature_group_count=8
    )
    return jnp.sum(jnp.square(y))


@jax.jit
def step(params, x):
    gradients = jax.grad(forward)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def step_inputs():
    def of(*shape, axis=None):
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(axis)))

    layers = [{"w": of(8, 8), "b": of(8)} for _ in range(3)]
    return {"layers": layers, "kernel": of(3, 3, 1, 8)}, of(16, 6, 6, 8, axis="data")
