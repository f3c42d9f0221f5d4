"""Data parallelism: the batch is sharded eight ways, parameters are everywhere.

Forward, the devices share nothing but the scalar loss: one all-reduce of four bytes. Backward, each device knows only
what its examples say about the parameters, so every weight and bias gradient is summed over all devices.
"""

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

SIZES = (16, 32, 32, 8)
EXAMPLES = 32
mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """A plain multilayer perceptron; it knows nothing of devices."""
    *hidden, (W_last, b_last) = params
    for W, b in hidden:
        x = jax.nn.relu(x @ W + b)
    return x @ W_last + b_last


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("batch")), out_specs=P())
def loss(params, batch):
    """The squared error, averaged over the whole batch."""
    x, targets = batch
    errors = jnp.sum((predict(params, x) - targets) ** 2, axis=-1)
    return lax.pmean(jnp.mean(errors), "batch")


grad = jax.jit(jax.grad(loss))


def loss_inputs():
    """Parameters on every device; examples and targets sharded along the batch."""
    random = np.random.default_rng(0)

    def normal(*shape):
        return (random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    params = [(normal(n, m), normal(m)) for n, m in pairwise(SIZES)]
    batch = (normal(EXAMPLES, SIZES[0]), normal(EXAMPLES, SIZES[-1]))
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, NamedSharding(mesh, P("batch")))


grad_inputs = loss_inputs

if __name__ == "__main__":
    print(loss(*loss_inputs()))
