"""Four moves of block matrices in explicit mode, each one collective.

With explicit axes a sharding is part of the type, `bfloat16[64@x,256@y]`, and only `reshard` or an `out_sharding` moves
data. Gathering the columns is an all-gather; sharding columns instead of rows is an all-to-all; a Gram matrix of
columns on different devices is an all-reduce; and when the product may stay sharded, a reduce-scatter would do, which
not every compiler forms.
"""

import jax
import jax.numpy as jnp
from jax import NamedSharding, P
from jax.sharding import AxisType, reshard

mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Explicit))


def sharding(*spec):
    """The sharding on this mesh that `spec` describes."""
    return NamedSharding(mesh, P(*spec))


def matrix(rows, columns, *spec):
    """Small integers, exact in bfloat16, sharded as `spec` says."""
    numbers = jnp.arange(rows * columns).reshape(rows, columns) % 3
    return jax.device_put(numbers.astype(jnp.bfloat16), sharding(*spec))


@jax.jit
def all_gather(a):
    """[I_x, J_y] → [I_x, J]: whole rows, on two devices each."""
    return reshard(a, sharding("x", None))


@jax.jit
def all_to_all(a):
    """[I_x, J] → [I, J_x]: rows sharded before, columns after."""
    return reshard(a, sharding(None, "x"))


@jax.jit
def all_reduce(a):
    """[I, J_x] [J_x, I] → [I, I]: each device's columns give a part of every entry."""
    return jnp.dot(a, a.mT, out_sharding=sharding())


@jax.jit
def reduce_scatter(a, b):
    """[I_x, J_y] [J_y, K] → [I_x, K_y]: the parts are summed over `y`, and the sum is sharded over `y`."""
    return jnp.dot(a, b, out_sharding=sharding("x", "y"))


all_gather_inputs = (matrix(64, 256, "x", "y"),)
all_to_all_inputs = (matrix(64, 256, "x", None),)
all_reduce_inputs = (matrix(64, 256, None, "x"),)
reduce_scatter_inputs = (matrix(64, 256, "x", "y"), matrix(256, 128, "y", None))

if __name__ == "__main__":
    print(jax.typeof(all_gather(*all_gather_inputs)), jax.typeof(all_to_all(*all_to_all_inputs)))
    print(jax.typeof(all_reduce(*all_reduce_inputs)), jax.typeof(reduce_scatter(*reduce_scatter_inputs)))
