# thread: jeertmans/DiffeRT#280
# asks: A scan's carry becomes varying
# truth: pcast the initial carry
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def total(xs):
    def add(carry, row):
        return carry + row.sum(), None

    carry, _ = jax.lax.scan(add, 0.0, xs)
    return jax.lax.psum(carry, "x")


f = jax.jit(jax.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P()))
print(f(jnp.arange(64.0).reshape(16, 4)))
