"""Parameters of which one spec is asked, though the devices do not divide all of them."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("fsdp",), axis_types=(AxisType.Auto,))


def init():
    return {"hidden": jnp.ones((64, 64)), "bias": jnp.zeros((10,)), "scale": jnp.ones(())}


shardings = jax.tree.map(lambda leaf: NamedSharding(mesh, P("fsdp")), jax.eval_shape(init))
params = jax.jit(init, out_shardings=shardings)()
print(sum(leaf.sum() for leaf in jax.tree.leaves(params)))
