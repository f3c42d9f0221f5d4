"""psum on a 2×2 mesh: over the rows of devices, the columns, or both.

The same 4×4 matrix, one 2×2 block a device. The axes that `psum` names decide who talks to whom: `i` joins devices
{0,2} and {1,3}, `j` joins {0,1} and {2,3}, both join all four. What was summed over an axis no longer varies along it
and can leave the `shard_map` without it.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((2, 2), ("i", "j"), axis_types=(AxisType.Auto, AxisType.Auto))


@partial(jax.shard_map, mesh=mesh, in_specs=P("i", "j"), out_specs=P())
def over_both(block):
    """The sum of all four blocks: one group of four devices."""
    return lax.psum(block, ("i", "j"))


@partial(jax.shard_map, mesh=mesh, in_specs=P("i", "j"), out_specs=P(None, "j"))
def over_rows(block):
    """The sum of the upper and the lower blocks: two groups that differ along `i`."""
    return lax.psum(block, "i")


@partial(jax.shard_map, mesh=mesh, in_specs=P("i", "j"), out_specs=P("i"))
def over_columns(block):
    """The sum of the left and the right blocks: two groups that differ along `j`."""
    return lax.psum(block, "j")


over_both_inputs = over_rows_inputs = over_columns_inputs = (jnp.arange(16).reshape(4, 4),)

if __name__ == "__main__":
    for function in (over_both, over_rows, over_columns):
        print(function(*over_both_inputs), end="\n\n")
