"""JAX's shard_map tutorial: a matmul that gathers block by block, both ways round."""

import jax
import jax.numpy as jnp
from checkouts import script
from jax.sharding import NamedSharding

tutorial = script("jax/docs/notebooks/shard_map.py")
mesh = jax.make_mesh((4,), ("i",), devices=jax.devices()[:4])
jax.set_mesh(mesh)
matmul = tutorial.matmul_allgather_overlapped_bidi


def matmul_inputs():
    place = lambda value, spec: jax.device_put(value, NamedSharding(mesh, spec))
    return place(jnp.ones((32, 16)), tutorial.lhs_spec), place(jnp.ones((16, 32)), tutorial.rhs_spec)
