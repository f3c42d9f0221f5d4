"""jax-llm-examples: Llama 3, one token for each sequence, weights over y."""

import jax
import jax.numpy as jnp
from checkouts import importable
from jax.sharding import AxisType

importable("jax-llm-examples/llama3")

from llama3_jax import model

mesh = jax.make_mesh((1, 4, 2), ("x", "y", "z"), axis_types=(AxisType.Explicit,) * 3)
jax.set_mesh(mesh)
config = model.Config(
    embed=64,
    ffw_size=128,
    q_heads=8,
    kv_heads=8,
    num_layers=2,
    head_dim=16,
    vocab_size=128,
    max_seq_len=32,
    causal=True,
    use_prefill_attn_kernel=False,
    use_decode_attn_kernel=False,
    quant_layer=False,
    quant_cache=False,
    mesh=mesh,
)
decode_step = model.decode_step


def decode_step_inputs():
    weights = model.Weights.init(jax.random.key(0), config)
    cache = model.KVCache.init(jax.random.key(1), config, 2)
    return jnp.ones((2, 1), jnp.int32), weights, cache, config
