"""Flax NNX, the guide to sharding: the layer that is made sharded."""

import jax
from checkouts import notebook

guide = notebook("flax/docs_nnx/guides/flax_gspmd.ipynb", last=14)
jax.set_mesh(guide.auto_mesh)
init_sharded_linear = guide.init_sharded_linear
init_sharded_linear_inputs = (guide.key,)
