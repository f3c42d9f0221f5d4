"""Needless constraints of one helper, called at several places: three have a gather in common, one has its own."""

import jax
import jax.numpy as jnp
from jax import NamedSharding, lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def along(value, *axes):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*axes)))


def one(a):
    return along(jnp.sin(along(2 * a)), "x")


def two(a):
    return along(jnp.cos(along(3 * a)), "x")


def three(a):
    b = along(jnp.exp(along(4 * a)), "x")
    return along(jnp.tanh(along(b * 7)), "x")


def program(a):
    return one(a), two(a), three(a)


program_inputs = (jax.ShapeDtypeStruct((16, 8), jnp.float32, sharding=NamedSharding(mesh, P("x"))),)
