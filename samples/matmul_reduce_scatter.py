"""A block matrix product, its sum scattered: at once, or around a ring.

Like `matmul_psum`, but no device wants a whole row of the product: `psum_scatter` sums over `y` and leaves each device
one slice of the columns. `overlapped` computes the product one slice at a time and sends each partial sum on while the
next is being multiplied, so that the wire and the matrix unit work at once.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

X, Y = 2, 4
mesh = jax.make_mesh((X, Y), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
by_blocks = partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))


@jax.jit
@by_blocks
def matmul(a, b):
    """One product, then one reduce-scatter along the columns."""
    return lax.psum_scatter(a @ b, "y", scatter_dimension=1, tiled=True)


@jax.jit
@by_blocks
def overlapped(a, b):
    """A product for each slice of the columns; the partial sums go around the ring of `y`."""
    me = lax.axis_index("y")
    width = b.shape[1] // Y

    def part(owner):
        return a @ lax.dynamic_slice_in_dim(b, owner % Y * width, width, axis=1)

    to_next = [(source, (source + 1) % Y) for source in range(Y)]
    partial_sum = part(me - 1)
    for step in range(2, Y + 1):
        partial_sum = lax.ppermute(partial_sum, "y", to_next) + part(me - step)
    return partial_sum


a = jnp.arange(8 * 16.0).reshape(8, 16)
b = jnp.arange(16 * 8.0).reshape(16, 8)
matmul_inputs = overlapped_inputs = (
    jax.device_put(a, NamedSharding(mesh, P("x", "y"))),
    jax.device_put(b, NamedSharding(mesh, P("y", None))),
)

if __name__ == "__main__":
    print(jnp.array_equal(matmul(*matmul_inputs), a @ b), jnp.array_equal(overlapped(*overlapped_inputs), a @ b))
