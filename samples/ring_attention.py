"""Ring attention: the sequence is sharded, keys and values travel in a ring.

No device ever holds the whole sequence. Each folds the block of keys and values at hand into a running softmax, then
passes it on and receives the next one, three times on four devices. The passing stands once in the program, in the
body of a scan, as two collective-permutes.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

DEVICES, HEADS, LENGTH, WIDTH = 4, 2, 32, 8
mesh = jax.make_mesh((DEVICES,), ("ring",), axis_types=(AxisType.Auto,))
to_next = [(source, (source + 1) % DEVICES) for source in range(DEVICES)]


def fold(state, q, k, v):
    """The running (maximum, denominator, numerator) of a softmax, with one more block of keys taken in."""
    peak, denominator, numerator = state
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / np.sqrt(WIDTH)
    higher = jnp.maximum(peak, jnp.max(scores, axis=-1))
    weights = jnp.exp(scores - higher[..., None])
    shrink = jnp.exp(peak - higher)
    denominator = denominator * shrink + jnp.sum(weights, axis=-1)
    numerator = numerator * shrink[..., None] + jnp.einsum("hqk,hkd->hqd", weights, v)
    return higher, denominator, numerator


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=P(None, "ring"), out_specs=P(None, "ring"))
def attend(q, k, v):
    """Every query's answer from all keys, none masked."""

    def pass_on(carry, _):
        state, block = carry
        block = lax.ppermute(block, "ring", to_next)
        return (fold(state, q, *block), block), None

    empty = jnp.full_like(q[..., 0], -jnp.inf), jnp.zeros_like(q[..., 0]), jnp.zeros_like(q)
    ((_, denominator, numerator), _), _ = lax.scan(pass_on, (fold(empty, q, k, v), (k, v)), length=DEVICES - 1)
    return numerator / denominator[..., None]


@jax.jit
@partial(jax.grad, argnums=(0, 1, 2))
def grad(q, k, v):
    """Gradient of half the squared length of all answers with respect to queries, keys and values."""
    return jnp.sum(attend(q, k, v) ** 2) / 2


def attend_inputs():
    """Queries, keys and values, sharded along the sequence."""
    random = np.random.default_rng(0)
    qkv = random.normal(size=(3, HEADS, LENGTH, WIDTH)).astype(np.float32)
    return tuple(jax.device_put(list(qkv), NamedSharding(mesh, P(None, "ring"))))


grad_inputs = attend_inputs

if __name__ == "__main__":
    print(attend(*attend_inputs()).sharding)
