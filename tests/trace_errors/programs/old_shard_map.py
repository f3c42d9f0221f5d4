import jax
from jax import lax, tree_map
from jax import numpy as jnp
from jax.sharding import PartitionSpec, use_mesh

mesh = jax.make_mesh((8,), ("x",))


def block(w, x):
    total = lax.psum(x @ w, "x")
    return lax.pvary(total, ("x",)) + x[:, :1]


with use_mesh(mesh):
    x = jax.sharding.reshard(jnp.arange(128.0).reshape(8, 16), PartitionSpec("x"))
    f = jax.shard_map(block, mesh, (PartitionSpec(), PartitionSpec("x")), PartitionSpec("x"), check_rep=False)
    print(tree_map(lambda a: a * 2, f(jnp.ones((16, 4)), x)).sum())
