"""JAX's shard_map tutorial: fully sharded and tensor parallel, with its own weights of the section before."""

import jax
from checkouts import script
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

tutorial = script("jax/docs/notebooks/shard_map.py")
mesh = jax.make_mesh((4, 2), ("batch", "feats"))
jax.set_mesh(mesh)
gradient = jax.jit(jax.grad(tutorial.loss_fsdp_tp))


def gradient_inputs():
    params, batch = tutorial.init(jax.random.key(0), [16, 32, 32, 16], 32)
    batch = jax.device_put(batch, NamedSharding(mesh, P("batch", "feats")))
    return jax.device_put(params, NamedSharding(mesh, P(("feats", "batch")))), batch
