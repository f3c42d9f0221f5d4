"""Flax NNX, toy example 3: its step, on its last state."""

from checkouts import script

example = script("flax/examples/nnx_toy_examples/03_train_state.py")
train_step = example.train_step
train_step_inputs = (example.state, example.batch)
