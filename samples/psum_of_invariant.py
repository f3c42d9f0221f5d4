"""Faulty: a penalty that all devices know already is summed over the devices.

Each device's loss is its share of the error plus a penalty on the weights. The shares add up, but every device adds the
same penalty, and the psum counts it eight times. No check complains: to sum a shared value is legal. `repaired` sums
the shares alone.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

DEVICES = 8
mesh = jax.make_mesh((DEVICES,), ("batch",), axis_types=(AxisType.Auto,))
by_examples = partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("batch")), out_specs=P())


@jax.jit
@by_examples
def faulty(weights, x):
    """The error, and eight times the penalty."""
    error = lax.psum(jnp.sum((x @ weights) ** 2), "batch")
    penalty = lax.psum(jnp.sum(weights**2), "batch")
    return error + penalty


@jax.jit
@by_examples
def repaired(weights, x):
    """The error, and the penalty."""
    error = lax.psum(jnp.sum((x @ weights) ** 2), "batch")
    penalty = jnp.sum(weights**2)
    return error + penalty


faulty_inputs = repaired_inputs = (
    jax.device_put(jnp.array([1.0, 2.0, 3.0]), NamedSharding(mesh, P())),
    jax.device_put(jnp.arange(16 * 3.0).reshape(16, 3), NamedSharding(mesh, P("batch"))),
)

if __name__ == "__main__":
    print(faulty(*faulty_inputs) - repaired(*repaired_inputs))  # seven penalties of 1 + 4 + 9
