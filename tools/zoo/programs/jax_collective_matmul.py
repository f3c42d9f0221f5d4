"""JAX's shard_map tutorial: a matmul that gathers block by block, both ways round."""

import jax
import jax.numpy as jnp
from checkouts import script
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

tutorial = script("jax/docs/notebooks/shard_map.py")
mesh = jax.sharding.Mesh(jax.devices()[:4], ("i",))  # of that section
jax.set_mesh(mesh)
matmul = tutorial.matmul_allgather_overlapped_bidi


def matmul_inputs():
    place = lambda value: jax.device_put(value, NamedSharding(mesh, P("i", None)))
    return place(jnp.ones((32, 16))), place(jnp.ones((16, 32)))
