"""The ringattention package: blockwise attention whose keys and values go round the devices of one axis."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
from checkouts import importable
from jax.extend.backend import get_backend
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

importable("ringattention")
jax.lib.xla_bridge = SimpleNamespace(get_backend=get_backend)  # which it looks for where JAX had it

from ringattention.ringattention_jax import ring_attention

mesh = jax.make_mesh((2, 4), ("dp", "sp"), axis_types=(AxisType.Auto,) * 2)
blockwise = dict(
    causal_block_size=1,
    deterministic=True,
    dropout_rng=None,
    attn_pdrop=0.0,
    query_chunk_size=16,
    key_chunk_size=16,
    policy=jax.checkpoint_policies.nothing_saveable,
    dtype=jnp.float32,
    precision=None,
    prevent_cse=True,
)
attend = jax.shard_map(
    partial(ring_attention, axis_name="sp", float32_logits=True, cache_idx=None, blockwise_kwargs=blockwise),
    mesh=mesh,
    in_specs=(P("dp", "sp"), P("dp", "sp"), P("dp", "sp"), P("dp"), P("dp")),
    out_specs=P("dp", "sp"),
    check_vma=False,
)


@jax.jit
def gradient(q, k, v, bias, segments):
    return jax.grad(lambda *qkv: jnp.sum(attend(*qkv, bias, segments)), argnums=(0, 1, 2))(q, k, v)


def gradient_inputs():
    array = jax.device_put(jnp.ones((2, 64, 4, 8)), NamedSharding(mesh, P("dp", "sp")))
    rows = NamedSharding(mesh, P("dp"))
    bias, segments = jnp.zeros((2, 1, 1, 64)), jnp.zeros((2, 64), jnp.int32)
    return array, array, array, jax.device_put(bias, rows), jax.device_put(segments, rows)
