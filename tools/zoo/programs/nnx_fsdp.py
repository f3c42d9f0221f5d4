"""Flax NNX, toy example 10, run to its end: its step, and the last that it was called with."""

from checkouts import script

example = script("flax/examples/nnx_toy_examples/10_fsdp_and_optimizer.py")
train_step = example.train_step
train_step_inputs = (example.model, example.optimizer, example.x_batch, example.y_batch)
