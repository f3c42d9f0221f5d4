"""JAX's tutorial on parallel programming, run to its end: what it leaves as `matmul`."""

import jax
from checkouts import script

tutorial = script("jax/docs/parallel.py")
matmul = jax.jit(tutorial.matmul)
matmul_inputs = (tutorial.x, tutorial.y)
