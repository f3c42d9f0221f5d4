"""Flax NNX, toy example 2: its step, on its model and last batch."""

from checkouts import script

example = script("flax/examples/nnx_toy_examples/02_lifted_transforms.py")
train_step = example.train_step
train_step_inputs = (example.model, example.optimizer, example.batch)
