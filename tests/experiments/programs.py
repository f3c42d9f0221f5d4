"""Programs with one request that costs more than it has to, and the request that is right."""

from __future__ import annotations

HEAD = """\
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

def S(*entries):
    return NamedSharding(mesh, P(*entries))

def A(sharding, *shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)
"""

CACHE = f"""{HEAD}
def decode(w, cache, x):
    k = x @ w["k"]
    cache = jax.lax.dynamic_update_slice_in_dim(cache, k[:, None], 0, 1)
    return jnp.einsum("bk,btk->bt", k, cache) @ w["o"], cache

step = jax.jit(decode, out_shardings=(S("data"), S()))
w = {{"k": A(S(None, "model"), 64, 64), "o": A(S(), 32, 64)}}
step_inputs = (w, A(S("data", None, "model"), 16, 32, 64), A(S("data"), 16, 64))
"""
"""A cache that is returned replicated, though the next step takes it sharded."""

VALUES = f"""{HEAD}
wsc = jax.lax.with_sharding_constraint

def attention(p, x):
    q = wsc(jnp.einsum("btd,dhk->bthk", x, p["q"]), S("data", None, "model"))
    v = jnp.einsum("btd,dhk->bthk", x, p["v"])
    v = wsc(v, S("data", "model"))
    s = jax.nn.softmax(jnp.einsum("bthk,bshk->bhts", q, q))
    return jnp.einsum("bhts,bshk,hkd->btd", s, v, p["o"])

step = jax.jit(attention, out_shardings=S("data"))
p = {{n: A(S(None, "model"), 64, 8, 16) for n in "qv"}} | {{"o": A(S("model"), 8, 16, 64)}}
step_inputs = (p, A(S("data"), 16, 32, 64))
"""
"""A constraint that shards the sequence where its neighbours shard the heads."""

CLEAN = VALUES.replace('v = wsc(v, S("data", "model"))', 'v = wsc(v, S("data", None, "model"))')

HELPER = f"""{HEAD}
def constrain(x, *entries):
    return jax.lax.with_sharding_constraint(x, S(*entries))

def mlp(w, x):
    h = constrain(x @ w["up"], "data", "model")
    h = constrain(jnp.tanh(h), "data")
    return constrain(h @ w["down"], "data")

step = jax.jit(mlp, out_shardings=S("data"))
w = {{"up": A(S(None, "model"), 64, 256), "down": A(S("model"), 256, 64)}}
step_inputs = (w, A(S("data"), 64, 64))
"""
"""A needless constraint among others that go through the same line of a helper."""

STATE = f"""{HEAD}
from typing import NamedTuple

class State(NamedTuple):
    params: dict
    mu: dict

def layout():
    return State(
        params={{"w": S("data", "model")}},
        mu={{"w": S()}},
    )

def update(state, x):
    g = jax.grad(lambda p: jnp.sum(jnp.tanh(x @ p["w"]) ** 2))(state.params)
    mu = jax.tree.map(lambda m, d: 0.9 * m + d, state.mu, g)
    return State(jax.tree.map(lambda p, m: p - 0.1 * m, state.params, mu), mu)

def main():
    step_fn = jax.jit(update, in_shardings=(layout(), S("data")), out_shardings=layout())
    return step_fn

step = main()
w = {{"w": jax.ShapeDtypeStruct((64, 256), jnp.float32)}}
step_inputs = (State(w, w), jax.ShapeDtypeStruct((16, 64), jnp.float32))
"""
"""Moments that are whole on every device, in a state whose layout a function makes."""

BATCH = f"""{HEAD}
rows = NamedSharding(mesh, P("model"))

def loss(w, x):
    return jnp.sum(jnp.tanh(jnp.tanh(x @ w["a"]) @ w["b"]) ** 2)

step = jax.jit(jax.grad(loss))
w = {{"a": A(S(), 256, 256), "b": A(S(), 256, 256)}}
step_inputs = (w, A(rows, 4096, 256))
"""
"""A batch that only two of eight devices divide among them."""
