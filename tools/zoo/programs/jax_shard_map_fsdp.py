"""JAX's shard_map tutorial up to FSDP: the gradient of its loss, on the parameters and batch of then."""

import jax
from checkouts import script

tutorial = script("jax/docs/notebooks/shard_map.py", lines=1444)

loss_fsdp = jax.jit(jax.grad(tutorial.loss_fsdp))
loss_fsdp_inputs = (tutorial.params, tutorial.batch)
