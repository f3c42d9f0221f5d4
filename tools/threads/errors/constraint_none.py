# thread: jax-ml/jax#19951
# asks: None in a tree of shardings for a constraint
# truth: a sharding for each leaf
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
data = NamedSharding(mesh, P("data"))


@jax.jit
def init_state(x):
    state = {"params": x * 2, "step": jnp.zeros(())}
    return jax.lax.with_sharding_constraint(state, {"params": data, "step": None})


print(init_state(jax.device_put(jnp.ones((16, 4)), data))["params"].sum())
