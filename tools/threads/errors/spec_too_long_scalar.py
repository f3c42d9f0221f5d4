# thread: -
# asks: A state with a scalar is put on a sharded spec
# truth: the scalar is replicated
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def init():
    return {"w": jnp.ones((16, 8)), "b": jnp.zeros((8,)), "step": jnp.zeros((), jnp.int32)}


state = init()
state = jax.device_put(state, NamedSharding(mesh, P("data")))
x = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P("data")))
print(jax.jit(lambda s, x: x @ s["w"] + s["b"])(state, x).sum())
