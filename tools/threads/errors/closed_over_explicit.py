# thread: jax-ml/jax#29162
# asks: shard_map closes over an array with explicit axes
# truth: pass it as an argument
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("s",), axis_types=(AxisType.Explicit,))
jax.set_mesh(mesh)
w = jax.device_put(jnp.arange(4.0), P(None))
x = jax.device_put(jnp.ones((16, 4)), P("s", None))


def body(block):
    return block @ w


print(jax.jit(jax.shard_map(body, in_specs=P("s"), out_specs=P("s")))(x))
