# thread: -
# asks: in_specs differ from the argument's sharding
# truth: reshard the argument
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)


def body(a):
    return a - jax.lax.pmean(a.mean(), "x")


f = jax.jit(jax.shard_map(body, in_specs=P("x"), out_specs=P("x")))
print(f(jnp.arange(16.0)))
