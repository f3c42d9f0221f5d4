"""Faulty: all devices receive the whole sum, and each keeps a slice of it.

A psum followed by every device's own slice is a reduce-scatter that was not written as one: twice the bytes on the
wire, and the whole sum in memory for a moment. Compilers do not reliably see it. `repaired` says `psum_scatter`.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

DEVICES = 8
mesh = jax.make_mesh((DEVICES,), ("x",), axis_types=(AxisType.Auto,))
by_columns = partial(jax.shard_map, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P("x"))


@jax.jit
@by_columns
def faulty(a, b):
    """The whole product on every device, then this device's rows."""
    product = lax.psum(a @ b, "x")
    rows = product.shape[0] // DEVICES
    return lax.dynamic_slice_in_dim(product, lax.axis_index("x") * rows, rows)


@jax.jit
@by_columns
def repaired(a, b):
    """This device's rows of the product."""
    return lax.psum_scatter(a @ b, "x", tiled=True)


faulty_inputs = repaired_inputs = (jnp.arange(16 * 24.0).reshape(16, 24), jnp.arange(24 * 4.0).reshape(24, 4))

if __name__ == "__main__":
    print(jnp.array_equal(faulty(*faulty_inputs), repaired(*repaired_inputs)))
