"""SS02 and SS14 as the partitioner makes them of constraints, in many spellings, beside what only looks like them."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import NamedSharding, lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from registry import Programs

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
programs = Programs()


def along(value, *axes):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*axes)))


@programs.found_by("SS02")
def scaled(a):
    return along(jnp.sin(along(2 * a)), "x")


@programs.found_by("SS02")
def cast(a):
    return along(along(a.astype(jnp.bfloat16)).astype(jnp.float32) + 1, "x")


@programs.found_by("SS02")
def transposed(a):
    return along(along(jnp.cos(a)).T * 3, None, "x")


@programs.found_by("SS02", gpu="", tpu="")  # both compilers take the gather out
def one_of_two(a):
    b = along(a * 2, "x", "y")
    return along(jnp.sin(along(b, None, "y")), "x", "y")


@programs.found_by("SS02")
def nested(a):
    return along(jax.jit(lambda v: along(jnp.tanh(v)))(a) - 1, "x")


@programs.found_by("SS02", tpu="", gpu="")  # their compilers take the gather out: the body communicates nothing
def in_scan(a):
    return lax.scan(lambda c, _: (along(jnp.sin(along(c)), "x"), None), along(a, "x"), None, 3)[0]


@programs.found_by("SS02", tpu="", gpu="")  # the same
def remat(a):
    return along(jax.checkpoint(lambda v: jnp.exp(along(v)))(a), "x")


@programs.found_by("SS02")
def into_shard_map(a):
    rows = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    return rows(lambda v: v - v.mean())(along(jnp.sin(a)))


@programs.found_by("SS02")
def multiplied(a):
    return along(along(a * 2) @ jnp.ones((8, 8)), "x")


@programs.found_by("SS14")
def back_and_forth(a):
    return along(jnp.sin(along(2 * a, None, "x")), "x")


@programs.found_by("SS14")
def axes_trade_places(a):
    return along(jnp.sin(along(jnp.cos(along(3 * a, "x", "y")), "y", "x")), "x", "y")


@programs.found_by()
def axes_trade_places_and_stay(a):
    there = along(jnp.cos(along(4 * a, "x", "y")), "y", "x")
    return along(there + 1, "x", "y"), there


@programs.found_by("SS14")
def back_and_forth_in_scan(a):
    return lax.scan(lambda c, _: (along(jnp.cos(along(c, None, "x")), "x"), None), along(a, "x"), None, 3)[0]


@programs.found_by()
def merged_and_gathered(a):
    """Heads that are sharded, put together and then gathered: that moves them, and not the reshape."""
    heads = along(a[:, :, None] + jnp.arange(4.0), None, "x")
    return along(jnp.tanh(heads.reshape(16, 32)))[:, :8] @ a.T


@programs.found_by()
def all_of_it_is_used(a):
    whole = along(a * 2)
    return along(whole - whole.mean(0), "x")


@programs.found_by(tpu="SS15")  # for TPUs the sort gathers its rows on every device
def columns_are_sorted(a):
    return along(jnp.sort(along(2 * a, None, "x"), axis=0), "x")


@programs.found_by()
def rows_all_the_way(a):
    return along(jnp.sin(along(2 * a, "x")), "x")


@programs.found_by()
def returned(a):
    whole = along(2 * a)
    return whole, along(jnp.sin(whole), "x")


def exchanged(value, split, concat):
    return lax.all_to_all(value, "x", split, concat, tiled=True)


def by_rows(body):
    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))


@programs.found_by("SS14")
@by_rows
def written_there_and_back(a):
    return exchanged(jax.nn.relu(exchanged(a + 5, 1, 0)) * 3, 0, 1)


def shifted(value, by):
    return lax.ppermute(value, "x", [(device, (device + by) % 4) for device in range(4)])


@programs.found_by("SS14")
@by_rows
def permuted_there_and_back(a):
    return shifted(jax.nn.relu(shifted(a + 7, 1)) * 3, -1)


@programs.found_by("SS27")
@by_rows
def permuted_on_and_on(a):
    return shifted(jax.nn.relu(shifted(a + 8, 1)) * 3, 1)


@programs.found_by("SS14")
@by_rows
def permuted_on_and_back(a):
    """The last one takes the second one back, and with both left out nothing is in a row."""
    return shifted(shifted(jnp.sin(shifted(a + 10, 1)), 1) * 2, -1)


@programs.found_by()
@by_rows
def permuted_and_kept(a):
    there = shifted(a + 9, 1)
    return shifted(there * 3, -1) + there


@programs.found_by()
@by_rows
def written_and_summed_in_between(a):
    columns = exchanged(a + 6, 1, 0)
    return exchanged(columns - jnp.mean(columns, 0), 0, 1)


@programs.found_by("SS14")
@by_rows
def written_with_others_in_between(a):
    columns = exchanged(a + 7, 1, 0)
    return exchanged(columns * jnp.arange(columns.shape[0])[:, None], 0, 1)


@programs.found_by("SS14")
@by_rows
def written_and_exchanged_elsewhere(a):
    return exchanged(jnp.sin(exchanged(a + 8, 1, 0)), 0, 0)


@programs.found_by()
@by_rows
def written_and_used_elsewhere(a):
    columns = exchanged(a + 9, 1, 0)
    return exchanged(jnp.sin(columns), 0, 1) + jnp.max(columns)


@programs.found_by()
def rows_with_parts_of_columns(a):
    """The rows stay blocks of the result: it is the constraint that moves them."""
    return along((along(a * 11, "x").reshape(4, -1, *a.shape[1:])), None, "x")


def program(a):
    # Each on numbers of its own, so that none is left out as another one's double.
    return [each(along(a * (1 + number), "x")) for number, each in enumerate(programs)]


program_inputs = (jax.ShapeDtypeStruct((16, 8), jnp.float32, sharding=NamedSharding(mesh, P("x"))),)
