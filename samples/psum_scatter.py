"""psum_scatter: the sum of all devices' blocks, one slice of it on each.

The digits of the sample `psum`, and the same sums; but each device keeps a quarter of them. On the wire that is half
of an all-reduce, the other half being the all-gather that would hand everyone the rest. XLA calls it reduce-scatter.
`by_hand` does the same with neighbours only: partial sums travel around the ring, and each stop adds its own share.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

DEVICES = 4
mesh = jax.make_mesh((DEVICES,), ("i",), axis_types=(AxisType.Auto,))


@partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
def psum_scatter(block):
    """One reduce-scatter."""
    return lax.psum_scatter(block, "i", tiled=True)


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
def by_hand(block):
    """Three collective-permutes: the sum that starts at a device ends, complete, at its neighbour behind it."""
    me = lax.axis_index("i")
    shares = block.reshape(DEVICES, -1)
    to_next = [(source, (source + 1) % DEVICES) for source in range(DEVICES)]
    partial_sum = shares[(me - 1) % DEVICES]
    for step in range(2, DEVICES + 1):
        partial_sum = lax.ppermute(partial_sum, "i", to_next) + shares[(me - step) % DEVICES]
    return partial_sum


psum_scatter_inputs = by_hand_inputs = (jnp.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 1, 2]),)

if __name__ == "__main__":
    print(psum_scatter(*psum_scatter_inputs))  # [22 20 12 17]
    print(by_hand(*by_hand_inputs))
