"""Faulty: each device takes its own branch, yet the type says all have the same.

The predicate of a `cond` varies over `x`, but the result's type is made from the branches alone, and both return a
shared value. So it may leave through `P()`, and the caller holds an array whose copies differ: which one is printed is
chance. `repaired` selects by `where`, whose type takes the predicate in, and then sums over the devices as meant.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
shared = partial(jax.shard_map, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())


@jax.jit
@shared
def faulty(block, rate):
    """A rate that depends on the device's own block, passed off as everybody's."""
    return lax.cond(jnp.sum(block) > 10, lambda r: r / 2, lambda r: r, rate)


@jax.jit
@shared
def repaired(block, rate):
    """The mean of the devices' rates."""
    return lax.pmean(jnp.where(jnp.sum(block) > 10, rate / 2, rate), "x")


faulty_inputs = repaired_inputs = (
    jax.device_put(jnp.array([3.0, 1, 4, 1, 5, 9, 2, 6]), NamedSharding(mesh, P("x"))),
    jax.device_put(jnp.float32(4), NamedSharding(mesh, P())),
)

if __name__ == "__main__":
    print([float(shard.data) for shard in faulty(*faulty_inputs).addressable_shards])  # [4.0, 4.0, 2.0, 4.0]
    print(repaired(*repaired_inputs))  # 3.5
