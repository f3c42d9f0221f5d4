"""Functions that do not trace, one for each way not to."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
explicit = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
by_rows = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))


@partial(jax.shard_map, mesh=mesh, in_specs=(P("x"), P()), out_specs=(P("x"), P()))
def two_results(a, w):
    scaled = a * jnp.sum(w)
    return scaled, jnp.mean(jnp.sin(scaled))


@partial(jax.shard_map, mesh=line, in_specs=P("x"), out_specs=P())
def only_axis(a):
    return a * 3


@partial(jax.shard_map, mesh=line, in_specs=P("x"), out_specs=P())
def gathered(a):
    return jnp.sin(lax.all_gather(a, "x", tiled=True))


@partial(jax.shard_map, mesh=line, in_specs=P(), out_specs=P())
def cast_for_nothing(a):
    return 2 * lax.pcast(a, "x", to="varying")


@by_rows
def carried(a):
    def body(carry):
        total, rounds = carry
        return total + jnp.sum(a), rounds + 1

    begin = (jnp.float32(0), 0)
    total, _ = lax.while_loop(lambda carry: carry[1] < 3, body, begin)
    return total[None]


@by_rows
def counted(a):
    return lax.fori_loop(0, 3, lambda i, c: c + a, jnp.ones(a.shape))


@by_rows
def branched(a):
    return lax.cond(a[0] > 0, lambda: a, lambda: jnp.zeros(a.shape))


@by_rows
def reduced_over_too_much(a):
    return a + lax.psum(a, ("x", "y"))


@by_rows
def cast_twice(a):
    return lax.pcast(a * 2, "x", to="varying")


@by_rows
def misnamed(a):
    return lax.psum(a, "xx")


def unmapped(a):
    return lax.psum(a, "x")


@partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
def not_manual(a):
    return lax.psum(a, "y")


@by_rows
def too_few_dimensions(a):
    return jnp.sum(a) + 1


@by_rows
def indivisible(a):
    return a


def left_open(a, b):
    return a @ b


def other_sums(a, b):
    return jnp.einsum("ij,jk->ik", a, b, out_sharding=jax.NamedSharding(explicit, P(None, None, unreduced={"y"})))


def unlike_operands(a, b):
    return jnp.sin(a) + b


def illegal_product(a, b):
    return a.T @ b.T


def open_lookup(a, b):
    return b[a[0].astype("int32")]


def joined(a, b):
    return jnp.concatenate([a, b])


def along(a, b):
    return b.cumsum(0)


def something_else(a):
    return a.nothing_of_that_name


numbers = (jnp.arange(8.0),)
carried_inputs = counted_inputs = branched_inputs = reduced_over_too_much_inputs = cast_twice_inputs = numbers
only_axis_inputs = unmapped_inputs = not_manual_inputs = misnamed_inputs = too_few_dimensions_inputs = (
    something_else_inputs
) = numbers
gathered_inputs = cast_for_nothing_inputs = numbers
two_results_inputs = (jnp.arange(8.0), jnp.arange(4.0))
indivisible_inputs = (jnp.arange(9.0),)
left_open_inputs = other_sums_inputs = unlike_operands_inputs = illegal_product_inputs = tuple(
    jax.ShapeDtypeStruct((8, 8), "float32", sharding=jax.NamedSharding(explicit, spec))
    for spec in (P(None, "x"), P("x"))
)
open_lookup_inputs = joined_inputs = along_inputs = left_open_inputs
