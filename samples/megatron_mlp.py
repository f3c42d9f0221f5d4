"""Megatron's perceptron: sharded columns, then rows, and a single psum for both.

The hidden features are sharded over `model`, so that the nonlinearity needs no communication and only the second
product leaves partial sums. Two such blocks, the batch over `data`. With the variance check on, the transpose of each
psum over `model` is free, and a psum appears instead where the shared input meets a sharded matrix: between the blocks.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

BLOCKS, EXAMPLES, WIDTH, HIDDEN = 2, 8, 16, 32
mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
SPECS = (P(None, "model"), P("model", None))  # of the two matrices of a block


def block(x, by_columns, by_rows):
    """`x` plus the perceptron of `x`: varies over `data` only, before and after."""
    return x + lax.psum(jax.nn.gelu(x @ by_columns) @ by_rows, "model")


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=([SPECS] * BLOCKS, P("data")), out_specs=P())
def loss(params, x):
    """The mean square of what the last block puts out."""
    for matrices in params:
        x = block(x, *matrices)
    return lax.pmean(jnp.mean(x * x), "data")


grad = jax.jit(jax.grad(loss))


def loss_inputs():
    """Matrices sharded over `model`, examples over `data`."""
    random = np.random.default_rng(0)

    def normal(spec, *shape):
        values = (random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)
        return jax.device_put(values, NamedSharding(mesh, spec))

    params = [(normal(SPECS[0], WIDTH, HIDDEN), normal(SPECS[1], HIDDEN, WIDTH)) for _ in range(BLOCKS)]
    return params, normal(P("data"), EXAMPLES, WIDTH)


grad_inputs = loss_inputs

if __name__ == "__main__":
    print(loss(*loss_inputs()))
