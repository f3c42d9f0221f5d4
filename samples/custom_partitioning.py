"""A function with its own partitioning and an einsum-like sharding rule.

To the partitioner `product` is opaque: all it has is the rule `... i j, ... j k -> ... i k`. The rule is enough to
shard `b` along `j` as `a` is sharded, although nobody said so, and the result along `i`. `partition` then gives the
local computation: a product of blocks, and a psum over the axes of `j`.
"""

import jax
import jax.numpy as jnp
from jax import NamedSharding, P, lax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))


@custom_partitioning
def batched(a, b):
    """A batched matrix product, as one device computes it."""
    return jnp.matmul(a, b)


def partition(mesh, operands, result):
    """The local computation for the shardings of `a` and the result, and the shardings that it wants for that."""

    def entries(array):
        spec = array.sharding.spec
        return *spec, *[None] * (array.ndim - len(spec))

    *batch, i, j = entries(operands[0])
    k = entries(result)[-1]

    def local(a, b):
        return jnp.matmul(a, b) if j is None else lax.psum(jnp.matmul(a, b), j)

    wanted = NamedSharding(mesh, P(*batch, i, j)), NamedSharding(mesh, P(*batch, j, k))
    return mesh, local, NamedSharding(mesh, P(*batch, i, k)), wanted


batched.def_partition(partition, sharding_rule="... i j, ... j k -> ... i k")

product = jax.jit(batched, in_shardings=(NamedSharding(mesh, P(None, "x", "y")), None))
product_inputs = (jnp.arange(2 * 16 * 8.0).reshape(2, 16, 8), jnp.arange(2 * 8 * 12.0).reshape(2, 8, 12))

if __name__ == "__main__":
    print(jnp.array_equal(product(*product_inputs), jnp.matmul(*product_inputs)))
