"""Loops of all kinds, gradients, and operations that communicate for reasons of their own."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType, NamedSharding

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
shift = partial(lax.ppermute, axis_name="data", perm=[(0, 1), (1, 2), (2, 3), (3, 0)])


def on(*axes):
    return NamedSharding(mesh, P(*axes))


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=P("data"), out_specs=P("data"), check_vma=False)
def rounds(x):
    """How often: by twos, downwards, up to a multiple, not at all, not known; in calls and scans."""
    x = lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 2, shift(s[1])), (1, x))[1]
    x = lax.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 3, lax.psum(s[1], "model")), (10, x))[1]
    x = lax.while_loop(lambda s: s[0] <= 6, lambda s: (s[0] + 1, lax.pmax(s[1], "model")), (2, x))[1]
    x = lax.while_loop(lambda s: s[0] != 4, lambda s: (s[0] + 1, lax.pmin(s[1], "data")), (0, x))[1]
    x = lax.while_loop(lambda s: s[0] < 0, lambda s: (s[0] + 1, lax.psum(s[1], "data")), (0, x))[1]
    x = lax.while_loop(lambda s: s.sum() < 100, lambda s: s + lax.pmean(s, "data"), x)
    x, ys = lax.scan(lambda c, i: (shift(c) * i, c.sum()), x, jnp.arange(5.0))
    x = lax.switch(x.sum().astype(int) % 3, [lambda v: v, shift, lambda v: shift(shift(v))], x)
    return lax.map(lambda row: shift(row), x) + ys.sum()


rounds_inputs = (jnp.arange(16.0).reshape(8, 2),)


def block(h, layer):
    q = jnp.einsum("bsd,dnh->bsnh", h, layer["q"])
    scores = jax.nn.softmax(jnp.einsum("bsnh,btnh->bnst", q, q), axis=-1)
    h = h + jnp.einsum("bnst,btnh,nhd->bsd", scores, q, layer["o"])
    h = lax.with_sharding_constraint(h, on("data"))
    return h + jnp.tanh(h @ layer["up"]) @ layer["down"], (h**2).mean()


def loss(params, tokens):
    h = params["embed"][tokens]
    h, norms = lax.scan(jax.checkpoint(block), h, params["layers"])
    logits = h @ params["embed"].T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], 2).mean() + norms.sum()


shapes = {"q": (2, 8, 2, 4), "o": (2, 2, 4, 8), "up": (2, 8, 16), "down": (2, 16, 8)}
specs = {
    "q": on(None, "data", "model"),
    "o": on(None, "model"),
    "up": on(None, "data", "model"),
    "down": on(None, "model", "data"),
}
weights = {"embed": on("model", "data"), "layers": specs}


@partial(jax.jit, in_shardings=(weights, on("data")), out_shardings=(on(), weights))
def step(params, tokens):
    """A transformer of two layers that are recomputed, and its gradients."""
    return jax.value_and_grad(loss)(params, tokens)


step_inputs = (
    {"embed": jnp.ones((16, 8)), "layers": {name: jnp.full(shape, 0.1) for name, shape in shapes.items()}},
    jnp.zeros((4, 4), int),
)


@partial(jax.jit, in_shardings=(on("data", "model"), on("data")), out_shardings=on("model"))
def rare(x, i):
    """Scatter, top_k, convolution, FFT, cumulative maximum, random numbers, an update of a slice, a transposition."""
    top, at = lax.top_k(x, 2)
    x = x.at[i].add(top.sum())
    y = lax.conv_general_dilated(x[None, None], jnp.ones((1, 1, 3, 3)), (1, 1), "SAME")[0, 0]
    y = jnp.abs(jnp.fft.fft(y, axis=1)) + lax.cummax(y, axis=0)
    y = lax.dynamic_update_slice(y, jax.random.normal(jax.random.key(0), (2, 4)), (i[0], 0))
    return lax.rev(y.T, (0,)) + jnp.argmax(y, axis=1) + at.sum()


rare_inputs = (jnp.arange(64.0).reshape(8, 8), jnp.arange(8))
