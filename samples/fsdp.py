"""Fully sharded data parallelism: parameters are gathered when needed.

Each device keeps an eighth of every weight. Just before a layer runs, an all-gather puts its weights together; the
backward pass asks for them a second time, since the policy forbids keeping them (a compiler may merge the two). The
transpose of the all-gather is a reduce-scatter: each device receives just its eighth of the summed gradient.
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


def anything_but_gathered(primitive, *_, **__):
    """A remat policy: save every intermediate value that no all-gather made."""
    return primitive is not lax.all_gather_p


@partial(jax.checkpoint, policy=anything_but_gathered)
def predict(params, x):
    """A multilayer perceptron whose layers gather their parameters first."""
    for layer, shards in enumerate(params):
        W, b = (lax.all_gather(shard, "batch", tiled=True) for shard in shards)
        x = x @ W + b
        if layer < len(params) - 1:
            x = jax.nn.relu(x)
    return x


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("batch"), P("batch")), out_specs=P())
def loss(params, batch):
    """The squared error, averaged over the whole batch."""
    x, targets = batch
    errors = jnp.sum((predict(params, x) - targets) ** 2, axis=-1)
    return lax.pmean(jnp.mean(errors), "batch")


grad = jax.jit(jax.grad(loss))


def loss_inputs():
    """Parameters, examples and targets, all sharded along their first dimension."""
    random = np.random.default_rng(0)

    def normal(*shape):
        return (random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    params = [(normal(n, m), normal(m)) for n, m in pairwise(SIZES)]
    batch = (normal(EXAMPLES, SIZES[0]), normal(EXAMPLES, SIZES[-1]))
    return jax.device_put((params, batch), NamedSharding(mesh, P("batch")))


grad_inputs = loss_inputs

if __name__ == "__main__":
    print(loss(*loss_inputs()))
