"""all_gather: every device gets every device's block.

One digit a device. Tiled, the gathered blocks follow one another along the existing dimension; untiled, they are
stacked along a fresh one. The result is typed as varying over `i` although all devices hold the same, which is what
lets its transpose be a reduce-scatter; so `out_specs` has to name `i`, and the caller sees four copies.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))


@partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
def tiled(block):
    """The blocks one after the other: int32[1] in, int32[4] out."""
    return lax.all_gather(block, "i", tiled=True)


@partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
def stacked(block):
    """The blocks as the rows of a matrix: int32[1] in, int32[4,1] out."""
    return lax.all_gather(block, "i")


tiled_inputs = stacked_inputs = (jnp.array([3, 9, 5, 2]),)

if __name__ == "__main__":
    print(tiled(*tiled_inputs))  # [3 9 5 2 3 9 5 2 3 9 5 2 3 9 5 2]
    print(stacked(*stacked_inputs).shape)  # (16, 1)
