"""psum: the sum of all devices' blocks, on every device.

Four devices hold four digits each. `psum` over `i` adds the blocks elementwise and gives each device the same four
sums, so the result needs no axis in its out_specs. Forward it is one all-reduce; its transpose costs nothing, because
the cotangent of a value that all devices share is shared too.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))


@partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P())
def psum(block):
    """The elementwise sum of the blocks."""
    return lax.psum(block, "i")


psum_inputs = (jnp.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 1, 2]),)

if __name__ == "__main__":
    print(psum(*psum_inputs))  # [22 20 12 17]
