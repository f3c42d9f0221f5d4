"""Faulty: unchecked, the backward pass sums what is summed already.

The transpose of a psum is free when the cotangent is the same on all devices. With `check_vma=False` nothing says so,
and the gradient of this two-block perceptron reduces over `model` once more for each psum of the forward pass, then
divides it away again. The numbers agree; the traffic does not. `repaired` is the same code with the check on.
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


def loss(params, x):
    """The mean square of what the last block puts out, one device's view."""
    for by_columns, by_rows in params:
        x = x + lax.psum(jax.nn.gelu(x @ by_columns) @ by_rows, "model")
    return lax.pmean(jnp.mean(x * x), "data")


mapped = partial(jax.shard_map, loss, mesh=mesh, in_specs=([SPECS] * BLOCKS, P("data")), out_specs=P())
faulty = jax.jit(jax.grad(mapped(check_vma=False)))
repaired = jax.jit(jax.grad(mapped(check_vma=True)))


def faulty_inputs():
    """Matrices sharded over `model`, examples over `data`."""
    random = np.random.default_rng(0)

    def normal(spec, *shape):
        values = (random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)
        return jax.device_put(values, NamedSharding(mesh, spec))

    params = [(normal(SPECS[0], WIDTH, HIDDEN), normal(SPECS[1], HIDDEN, WIDTH)) for _ in range(BLOCKS)]
    return params, normal(P("data"), EXAMPLES, WIDTH)


repaired_inputs = faulty_inputs
