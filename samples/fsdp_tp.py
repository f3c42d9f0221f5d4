"""FSDP and tensor parallelism together, one `shard_map` around everything.

Rows of the weights are sharded over `feats` and then over `batch`. Each layer gathers its rows along `batch`,
multiplies, and reduce-scatters along `feats`: two collectives over two axes, whose groups cross. Backward they swap
roles. The loss sums the squared errors over `feats` and averages over `batch`, both by hand.
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
mesh = jax.make_mesh((4, 2), ("batch", "feats"), axis_types=(AxisType.Auto, AxisType.Auto))


def anything_but_gathered(primitive, *_, **__):
    """A remat policy: save every intermediate value that no all-gather made."""
    return primitive is not lax.all_gather_p


@partial(jax.checkpoint, policy=anything_but_gathered)
def predict(params, x):
    """Examples sharded over `batch`, features over `feats`, from the first layer to the last."""
    for layer, shards in enumerate(params):
        W, b = (lax.all_gather(shard, "batch", tiled=True) for shard in shards)
        x = lax.psum_scatter(x @ W, "feats", scatter_dimension=1, tiled=True) + b
        if layer < len(params) - 1:
            x = jax.nn.relu(x)
    return x


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P(("feats", "batch")), P("batch", "feats")), out_specs=P())
def loss(params, batch):
    """The squared error, summed over all features and averaged over the whole batch."""
    x, targets = batch
    errors = lax.psum(jnp.sum((predict(params, x) - targets) ** 2, axis=-1), "feats")
    return lax.pmean(jnp.mean(errors), "batch")


grad = jax.jit(jax.grad(loss))


def loss_inputs():
    """Parameters sharded eight ways along their rows, the batch along both dimensions."""
    random = np.random.default_rng(0)

    def normal(*shape):
        return (random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    params = [(normal(n, m), normal(m)) for n, m in pairwise(SIZES)]
    batch = (normal(EXAMPLES, SIZES[0]), normal(EXAMPLES, SIZES[-1]))
    return (
        jax.device_put(params, NamedSharding(mesh, P(("feats", "batch")))),
        jax.device_put(batch, NamedSharding(mesh, P("batch", "feats"))),
    )


grad_inputs = loss_inputs

if __name__ == "__main__":
    print(loss(*loss_inputs()))
