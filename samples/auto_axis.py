"""A `shard_map` over one axis of two: the other stays with the partitioner.

By hand over `data`: each device has its own examples, and a pmean makes one loss of them. Automatic over `model`: the
body is written for whole matrices, but they arrive sharded, by columns and by rows, and stay so; the all-reduce after
the second product is the partitioner's work. So one function holds both kinds of collective, and its gradient too.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))


@jax.jit
@partial(jax.shard_map, mesh=mesh, axis_names={"data"}, in_specs=(P(), P("data")), out_specs=P())
def loss(params, x):
    """Distance of the perceptron's answers from its input; `axis_names` makes `data` the only manual axis."""
    w1, w2 = params
    return lax.pmean(jnp.mean((jnp.tanh(x @ w1) @ w2 - x) ** 2), "data")


grad = jax.jit(jax.grad(loss))


def loss_inputs():
    """Examples sharded over `data`; one matrix by columns, the next by rows over `model`."""
    random = np.random.default_rng(0)

    def normal(spec, *shape):
        values = (random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)
        return jax.device_put(values, NamedSharding(mesh, spec))

    return (normal(P(None, "model"), 8, 32), normal(P("model"), 32, 8)), normal(P("data"), 16, 8)


grad_inputs = loss_inputs

if __name__ == "__main__":
    print(loss(*loss_inputs()))
