"""JAX's tutorial on parallel programming, up to its constraint: the function that has it."""

from checkouts import script

tutorial = script("jax/docs/parallel.py", lines=480)
f = tutorial.f
f_inputs = (tutorial.x, tutorial.y)
