"""JAX's shard_map tutorial, run to its end: collective matmuls, FSDP with TP, and the pipeline."""

import jax
from checkouts import script

tutorial = script("jax/docs/notebooks/shard_map.py")

loss_pp = jax.jit(jax.value_and_grad(tutorial.loss_pp))
loss_pp_inputs = (tutorial.params_, tutorial.batch_)
