"""Equinox, the notebook on parallelism: its step, after the last."""

import equinox
import numpy as np
from checkouts import notebook

example = notebook("equinox/docs/examples/parallelism.ipynb")
train_step = example.train_step
rows = (np.ones((example.batch_size, example.channel_size)),) * 2
train_step_inputs = (example.model, example.opt_state, *equinox.filter_shard(rows, example.data_sharding))
