"""all_to_all: a transpose whose one dimension is the devices.

Each device splits its block into four pieces and sends piece k to device k. Write the digits as a 4×4 matrix, one row
a device: afterwards each device holds one column. Doing it twice gives back what one began with.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))


@partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
def all_to_all(block):
    """Piece k of every block, on device k."""
    return lax.all_to_all(block, "i", split_axis=0, concat_axis=0, tiled=True)


all_to_all_inputs = (jnp.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 1, 2]),)

if __name__ == "__main__":
    print(all_to_all(*all_to_all_inputs))  # [3 5 5 9 1 9 3 7 4 2 5 1 1 6 8 2]
