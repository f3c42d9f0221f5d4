"""jax-llm-examples: Qwen 3 with a mixture of experts, the prefill of a prompt."""

import jax
import jax.numpy as jnp
from checkouts import importable
from jax.sharding import AxisType

importable("jax-llm-examples/qwen3")

from qwen3_jax import model

mesh = jax.make_mesh((1, 4, 2), ("x", "y", "z"), axis_types=(AxisType.Explicit,) * 3)
jax.set_mesh(mesh)
config = model.Config(
    embed=64,
    q_heads=8,
    kv_heads=4,
    num_layers=2,
    head_dim=16,
    vocab_size=128,
    max_seq_len=32,
    causal=True,
    moe_ffw_size=32,
    moe_experts_per_tok=2,
    moe_num_experts=8,
    ep_strategy="decode",
    mlp_ffw_size=128,
    mlp_layer_idxs=[],
    mesh=mesh,
)
decode_step = model.decode_step


def decode_step_inputs():
    weights = model.Weights.init(jax.random.key(0), config)
    cache = model.KVCache.init(jax.random.key(1), config, 4, config.max_seq_len)
    return jnp.ones((4, 1), jnp.int32), weights, cache, config
