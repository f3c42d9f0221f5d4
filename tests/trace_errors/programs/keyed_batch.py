import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

AXES = ("dp", "mp")
mesh = jax.make_mesh((4, 2), AXES)
batch = {"data": jnp.ones((16, 4)), "mask": jnp.ones(16)}


def place(tree):
    return {
        "data": jax.device_put(tree["data"], NamedSharding(mesh, P("data", None))),
        "mask": jax.device_put(tree["mask"], NamedSharding(mesh, P("data"))),
    }


placed = place(batch)
print(jnp.sum(placed["data"] * placed["mask"][:, None]))
