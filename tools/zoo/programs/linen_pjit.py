"""Flax Linen, the guide to pjit: its step and its forward pass, after the last."""

import jax
from checkouts import notebook

guide = notebook("flax/docs/guides/parallel_training/flax_on_pjit.ipynb")
jax.set_mesh(guide.mesh)
train_step = guide.train_step
train_step_inputs = (guide.initialized_state, guide.x)
apply_fn = guide.apply_fn
apply_fn_inputs = (guide.new_state, guide.x)
