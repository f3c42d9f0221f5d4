"""ppermute: each device sends its block to the one it is told to.

`shift` moves every block one device further around the ring. `shift_open` leaves the last link out: device 0 is
nobody's destination, and what it receives is zeros.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))


@partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
def shift(block):
    """A full ring: 0→1→2→3→0."""
    return lax.ppermute(block, "i", [(0, 1), (1, 2), (2, 3), (3, 0)])


@partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
def shift_open(block):
    """A chain: 0→1→2→3; zeros enter at device 0."""
    return lax.ppermute(block, "i", [(0, 1), (1, 2), (2, 3)])


shift_inputs = shift_open_inputs = (jnp.arange(1, 9),)

if __name__ == "__main__":
    print(shift(*shift_inputs))  # [7 8 1 2 3 4 5 6]
    print(shift_open(*shift_open_inputs))  # [0 0 1 2 3 4 5 6]
