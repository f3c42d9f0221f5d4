"""Optax, the notebook on meta-learning: its outer step, on what the last one was given."""

from checkouts import notebook

example = notebook("optax/examples/meta_learning.ipynb", last=15)
outer_step = example.outer_step
outer_step_inputs = (example.eta, example.theta, example.meta_state, example.state, example.samples)
