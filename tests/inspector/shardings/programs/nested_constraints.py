"""Constraints in functions that call each other, in a loop and in a branch, each from a line of its own."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def on(*axes):
    return NamedSharding(mesh, P(*axes))


constrain = jax.lax.with_sharding_constraint


@jax.jit
def inner(v):
    return constrain(v * 2, on("x", None))


@jax.jit
def middle(v):
    w = inner(v) + inner(v + 1)
    return constrain(w, on(None, "y"))


def looped(carry, _):
    return constrain(inner(carry), on("y", "x")), None


def step(v):
    a, _ = jax.lax.scan(looped, middle(v), None, length=2)
    b = jax.lax.cond(a[0, 0] > 0, lambda u: constrain(u, on(None, "x")), jnp.cos, a)
    c = constrain(jnp.sin(b), on(("x", "y"), None))
    return constrain(c + 1, on("y", None)), constrain(v, on(None, ("y", "x")))


inputs = (jax.ShapeDtypeStruct((8, 8), jnp.float32),)
