"""JAX's notebook on offloading to the host: its last step, whose optimizer state stays there."""

from checkouts import notebook

example = notebook("jax/docs/notebooks/host-offloading.ipynb")
step = example.step
step_inputs = (example.new_params, example.opt_state, example.input)
