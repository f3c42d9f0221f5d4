"""A training step of two transformer layers with FSDP and tensor parallelism, all by plain `jit`."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

SPECS = {
    "embed": ["model", "data"],
    "wqkv": ["data", "model"],
    "wo": ["model", "data"],
    "w1": ["data", "model"],
    "w2": ["model", "data"],
}
WIDTH, HEADS, HIDDEN, WORDS, LENGTH, BATCH, LAYERS = 32, 4, 64, 128, 16, 8, 2
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def on(*entries):
    return NamedSharding(mesh, P(*entries))


def normalized(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def attention(p, x):
    parts = jnp.split(normalized(x) @ p["wqkv"], 3, -1)
    q, k, v = (part.reshape(*part.shape[:2], HEADS, WIDTH // HEADS) for part in parts)
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)
    return mixed @ p["wo"]


def mlp(p, x):
    return jax.nn.gelu(normalized(x) @ p["w1"]) @ p["w2"]


def loss(params, tokens):
    x = jax.lax.with_sharding_constraint(params["embed"][tokens], on("data"))
    for p in params["layers"]:
        x = x + attention(p, x)
        x = x + mlp(p, x)
    scores = jax.nn.log_softmax(normalized(x)[:, :-1] @ params["embed"].T)
    return -jnp.mean(jnp.take_along_axis(scores, tokens[:, 1:, None], -1))


def step(params, tokens):
    value, gradient = jax.value_and_grad(loss)(params, tokens)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)


def weight(name, *shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=on(*SPECS[name]))


def step_inputs():
    layer = {
        "wqkv": weight("wqkv", WIDTH, 3 * WIDTH),
        "wo": weight("wo", WIDTH, WIDTH),
        "w1": weight("w1", WIDTH, HIDDEN),
        "w2": weight("w2", HIDDEN, WIDTH),
    }
    params = {"embed": weight("embed", WORDS, WIDTH), "layers": [layer] * LAYERS}
    return params, jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32, sharding=on("data"))
