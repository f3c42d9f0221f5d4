"""Orbax, the introduction to checkpoints: the step between checkpoints, on sharded arrays that were restored."""

import jax
from checkouts import notebook
from jax.sharding import Mesh, NamedSharding, PartitionSpec

example = notebook("orbax/docs/guides/checkpoint/orbax_checkpoint_101.ipynb")
train_fn = example.train_fn
rows = NamedSharding(Mesh(jax.devices(), ("model",)), PartitionSpec("model"))
train_fn_inputs = (jax.device_put(example.restored, rows),)
