"""Bonsai: Qwen 3 in NNX, FSDP and tensor parallelism by explicit axes."""

import jax
import jax.numpy as jnp
from checkouts import importable
from flax import nnx
from jax import P
from jax.sharding import AxisType

importable("bonsai")

from bonsai.models.qwen3 import modeling

mesh = jax.make_mesh((4, 2), ("fsdp", "tp"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)
config = modeling.ModelConfig(
    num_layers=2,
    vocab_size=128,
    emb_dim=64,
    mlp_dim=128,
    num_heads=4,
    head_dim=16,
    num_kv_heads=4,
    rope_theta=1000000,
    rope_scaling_factor=1.0,
    local_rope_theta=1e4,
    norm_eps=1e-6,
    tie_word_embeddings=True,
    shd_cfg=modeling.ShardConfig.default(True, True),
)


@nnx.jit
def forward(model, cache, tokens, segments):
    return model(tokens, cache=cache, segment_ids=segments)


def forward_inputs():
    model = modeling.Qwen3(config, rngs=nnx.Rngs(0))
    tokens = jax.device_put(jnp.ones((4, 16), jnp.int32), P("fsdp"))
    cache = modeling.init_cache(config, 4, 16, 1, jnp.float32)
    return model, cache, tokens, jax.device_put(jnp.ones((4, 16), jnp.int32), P("fsdp"))
