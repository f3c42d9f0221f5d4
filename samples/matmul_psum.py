"""A block matrix product with summed partial results: by hand, and automatic.

`a` is sharded along rows (`x`) and columns (`y`), `b` along the rows that meet those columns. Each device multiplies
what it has, which is a part of the sum; the all-reduce over `y` completes it. `automatic` says only how operands and
result are sharded, and the partitioner comes to the same all-reduce.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))


@partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
def matmul(a, b):
    """float32[2,8] times float32[8,4] on each device, and a psum over `y`."""
    return lax.psum(a @ b, "y")


@jax.jit
def automatic(a, b):
    """The whole product, sharded by constraint."""
    return lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x", None)))


a = jnp.arange(8 * 16.0).reshape(8, 16)
b = jnp.arange(16 * 4.0).reshape(16, 4)
matmul_inputs = automatic_inputs = (
    jax.device_put(a, NamedSharding(mesh, P("x", "y"))),
    jax.device_put(b, NamedSharding(mesh, P("y", None))),
)

if __name__ == "__main__":
    print(jnp.array_equal(matmul(*matmul_inputs), a @ b), jnp.array_equal(automatic(*automatic_inputs), a @ b))
