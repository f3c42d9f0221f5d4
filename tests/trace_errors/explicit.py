"""Functions that do not trace, of arrays whose shardings are part of their types."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def updated(a, b):
    return lax.dynamic_update_slice(a, b, (0, 0))


def added_at_rows(a, b):
    return a.at[jnp.arange(8)].add(b)


def set_at_rows(a, b):
    return a.at[jnp.arange(4)].set(1.0) + b.sum()


def constrained(a, b):
    return lax.with_sharding_constraint(a, P("y")) + b.sum()


def scanned(a, b):
    return lax.scan(lambda carry, row: (carry + row, None), jnp.zeros(8), b)[0]


def carried_on(a, b):
    def body(carry, _):
        total, count = carry
        return (total @ b, count + 1), None

    return lax.scan(body, (a, 0), length=3)[0][0]


def looped(a, b):
    return lax.fori_loop(0, 3, lambda i, v: jax.sharding.reshard(v, P("y")), a)


def either(a, b):
    return lax.cond(b[0, 0] > 0, lambda: a, lambda: b)


def chosen(a, b):
    return lax.select(a > 0, a, b)


def convolved(a, b):
    return lax.conv_general_dilated(b[None], a[None], (1,), "SAME")


def merged(a, b):
    return b.reshape(4, 2, 8).reshape(8, 8) + a.reshape(64)[:8]


def solved(a, b):
    return jnp.linalg.solve(b, a)


def largest(a, b):
    return lax.top_k(a, 2)


def sines_of_sums(a, b):
    return jnp.sin(jnp.einsum("ij,jk->ik", a, b, out_sharding=P(None, None, unreduced={"x"})))


def sums_and_one(a, b):
    return 1 * jnp.ones((8, 8)) + jnp.einsum("ij,jk->ik", a, b, out_sharding=P(None, None, unreduced={"x"}))


def taken(a, b):
    return jnp.take(b, jnp.argmax(a, 1), axis=0)


sharded = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P())


@sharded
def total(b):
    return jnp.sum(b, keepdims=True)


@partial(jax.shard_map, mesh=mesh, in_specs=(P("y"), P("x")), out_specs=P("x"))
def other_specs(a, b):
    return a[:2] + b


total_inputs = (jax.ShapeDtypeStruct((8, 8), "float32", sharding=jax.NamedSharding(mesh, P("x"))),)
updated_inputs = added_at_rows_inputs = set_at_rows_inputs = constrained_inputs = scanned_inputs = tuple(
    jax.ShapeDtypeStruct((8, 8), "float32", sharding=jax.NamedSharding(mesh, spec)) for spec in (P(None, "x"), P("x"))
)
carried_on_inputs = looped_inputs = either_inputs = chosen_inputs = convolved_inputs = merged_inputs = updated_inputs
solved_inputs = largest_inputs = sines_of_sums_inputs = sums_and_one_inputs = taken_inputs = updated_inputs
other_specs_inputs = updated_inputs
