"""Tensor parallelism: sharded features, `shard_map` for a layer, `jit` around it.

Each device holds the rows of `W` that meet its features, so its product is a part of every output feature; the
reduce-scatter sums the parts and leaves each device its own features again. The loss is written as if for one device:
its sum over features crosses devices, and the all-reduce for that is the partitioner's, not ours.
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
mesh = jax.make_mesh((8,), ("feats",), axis_types=(AxisType.Auto,))


@partial(jax.shard_map, mesh=mesh, in_specs=(P(None, "feats"), P("feats"), P("feats")), out_specs=P(None, "feats"))
def layer(x, W, b):
    """`x @ W + b`, all three and the result sharded along the features."""
    return lax.psum_scatter(x @ W, "feats", scatter_dimension=1, tiled=True) + b


@jax.jit
def loss(params, batch):
    """The squared error, averaged over the batch, which no axis shards here."""
    x, targets = batch
    *hidden, last = params
    for W, b in hidden:
        x = jax.nn.relu(layer(x, W, b))
    return jnp.mean(jnp.sum((layer(x, *last) - targets) ** 2, axis=-1))


grad = jax.jit(jax.grad(loss))


def loss_inputs():
    """Parameters sharded along their input features, the batch along its features."""
    random = np.random.default_rng(0)

    def normal(*shape):
        return (random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    params = [(normal(n, m), normal(m)) for n, m in pairwise(SIZES)]
    batch = (normal(EXAMPLES, SIZES[0]), normal(EXAMPLES, SIZES[-1]))
    by_feature = NamedSharding(mesh, P(None, "feats"))
    return jax.device_put(params, NamedSharding(mesh, P("feats"))), jax.device_put(batch, by_feature)


grad_inputs = loss_inputs

if __name__ == "__main__":
    print(loss(*loss_inputs()))
