"""One function of every kind that one may ask to be captured, and its arguments."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))


def on(*entries):
    return NamedSharding(mesh, P(*entries))


@partial(jax.jit, in_shardings=(on("x", None), on(None, "y")), out_shardings=on("x", "y"))
def sharded(a, b):
    return a @ b


sharded_inputs = (jax.ShapeDtypeStruct((8, 16), jnp.float32), jax.ShapeDtypeStruct((16, 4), jnp.float32))


@partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
def mapped(a, b):
    return lax.psum(a @ b, "y")


def mapped_inputs():
    return jnp.arange(8 * 16.0).reshape(8, 16), jnp.arange(16 * 4.0).reshape(16, 4)


def layers(ws, x):
    layer = jax.shard_map(
        lambda h, w: jnp.tanh(lax.psum(h @ w, "y")),
        mesh=mesh,
        in_specs=(P("x", "y"), P("y", None)),
        out_specs=P("x", None),
    )
    x = lax.with_sharding_constraint(x, on("x", None))
    return jnp.sum(lax.scan(lambda h, w: (layer(h, w), None), x, ws)[0] ** 2)


looped = jax.grad(layers)
looped_inputs = (jax.ShapeDtypeStruct((3, 16, 16), jnp.float32), jax.ShapeDtypeStruct((8, 16), jnp.float32))


@partial(jax.jit, donate_argnums=0)
def donated(state, step):
    return {"w": state["w"] + step, "count": state["count"] + 1}


donated_inputs = ({"w": jnp.zeros((8, 4)), "count": jnp.zeros((), jnp.int32)}, jnp.ones((8, 4)))


@partial(jax.jit, static_argnums=(1, -1), static_argnames="mode")
def static(x, times, offset, *rest, mode="add"):
    return (x * times if mode == "scale" else x + times) + offset + sum(r * 0 for r in rest[:-1])


static_inputs = ((jnp.ones(8), 3, jnp.ones(8), jnp.ones(8), 5), {"mode": "scale"})

bound = partial(static, jnp.ones(8), 2)
bound_inputs = (jnp.ones(8), jnp.ones(8), 7)


class Model:
    def __init__(self):
        self.w = jnp.eye(4)

    def __call__(self, x):
        return x @ self.w

    def method(self, x, scale=2.0):
        return scale * self(x)

    @partial(jax.jit, static_argnums=0)
    def jitted_method(self, x):
        return -self(x)


model = Model()
method_inputs = jitted_method_inputs = model_inputs = (jnp.ones((2, 4)),)


def with_modes(x, mode, *, verbose):
    return x + 1 if mode == "up" and verbose is not print else x - 1


with_modes_inputs = ((jnp.zeros(3), "up"), {"verbose": len})


def nothing():
    return jnp.arange(3), {"a": (jnp.inf, jnp.nan), "key": jax.random.key(1)}
