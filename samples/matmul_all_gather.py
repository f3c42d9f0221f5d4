"""A product that needs all rows: gathered first, or fetched while multiplying.

Both operands are sharded along their rows. `gathered` waits for all of `rhs` before it multiplies. `overlapped`
multiplies the rows that it holds while the next ones arrive from its neighbour, and never holds more than one block of
them. `both_ways` sends half blocks up and half blocks down the ring, which uses both directions of each link.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

N = 4
mesh = jax.make_mesh((N,), ("i",), axis_types=(AxisType.Auto,))
by_rows = partial(jax.shard_map, mesh=mesh, in_specs=(P("i"), P("i")), out_specs=P("i"))
up = [(source, (source + 1) % N) for source in range(N)]
down = [(source, (source - 1) % N) for source in range(N)]


@jax.jit
@by_rows
def gathered(lhs, rhs):
    """One all-gather, one product."""
    return lhs @ lax.all_gather(rhs, "i", tiled=True)


@jax.jit
@by_rows
def overlapped(lhs, rhs):
    """As many products as devices, with a collective-permute between each two."""
    me = lax.axis_index("i")
    columns = jnp.stack(jnp.split(lhs, N, axis=1))
    total = columns[me] @ rhs
    for step in range(1, N):
        rhs = lax.ppermute(rhs, "i", up)
        total += columns[(me - step) % N] @ rhs
    return total


@jax.jit
@by_rows
def both_ways(lhs, rhs):
    """Like `overlapped`, with the upper half of each block travelling up and the lower half down."""
    me = lax.axis_index("i")
    columns = jnp.stack(jnp.split(lhs, 2 * N, axis=1))
    upper, lower = jnp.split(rhs, 2)
    total = columns[2 * me] @ upper + columns[2 * me + 1] @ lower
    for step in range(1, N):
        upper, lower = lax.ppermute(upper, "i", up), lax.ppermute(lower, "i", down)
        total += columns[2 * ((me - step) % N)] @ upper + columns[2 * ((me + step) % N) + 1] @ lower
    return total


random = np.random.default_rng(0)
lhs = random.normal(size=(8, 8)).astype(np.float32)
rhs = random.normal(size=(8, 4)).astype(np.float32)
gathered_inputs = overlapped_inputs = both_ways_inputs = jax.device_put((lhs, rhs), NamedSharding(mesh, P("i")))

if __name__ == "__main__":
    for function in (gathered, overlapped, both_ways):
        print(function.__name__, jnp.allclose(function(*gathered_inputs), lhs @ rhs, atol=1e-5))
