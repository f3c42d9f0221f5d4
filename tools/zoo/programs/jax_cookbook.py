"""JAX's training cookbook: explicit axes, weights and optimizer in Refs."""

import jax
import numpy as np
from checkouts import script

cookbook = script("jax/docs/the-training-cookbook.py")
train_step = cookbook.train_step


def train_step_inputs():
    config = cookbook.Config(num_layers=2, embed_dim=64, mlp_dim=128, head_dim=16, seq_length=32, dtype="float32")
    state = jax.tree.map(jax.ref.new_ref, cookbook.init_train_state(config))
    ids = np.zeros((config.host_batch_size, config.seq_length), np.uint8)
    place = lambda ids: jax.make_array_from_process_local_data(jax.P(config.mesh_axis_names), ids)
    return config, state, {"observed_ids": place(ids), "target_ids": place(ids)}
