"""JAX's shard_map tutorial, run to its end: the gradients that it takes of its losses."""

import jax
from checkouts import script

tutorial = script("jax/docs/notebooks/shard_map.py")

loss_pp = jax.jit(jax.grad(tutorial.loss_pp))
loss_pp_inputs = (tutorial.params_, tutorial.batch_)
