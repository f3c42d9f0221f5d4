"""An ensemble whose vmap is given the axis that the constraint inside of it names."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "member"), axis_types=(AxisType.Auto,) * 2)


def predict(w, x):
    """One member."""
    return jax.lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(mesh, P("data", None)))


@jax.jit
def ensemble(ws, x):
    """The mean of all members."""
    return jax.vmap(predict, in_axes=(0, None), spmd_axis_name="data")(ws, x).mean(0)


print(ensemble(jnp.ones((2, 8, 8)), jnp.ones((16, 8))).sum())
