"""A fault and its repaired twin for each rule that looks at what the compiler made of a program."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import NamedSharding, lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from registry import Programs

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
rows = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
checked = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
programs = Programs()


def along(value, *axes):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*axes)))


@programs.found_by("SS07", tpu="", gpu="")  # their compilers sum once, behind the loop
@rows
def summed_each_time(a):
    return lax.scan(lambda c, v: (c + lax.psum(v, "x"), None), jnp.zeros(8), a)[0][None] * a


@programs.found_by()
@rows
def summed_once(a):
    return lax.psum(lax.scan(lambda c, v: (c + v, None), jnp.zeros(8), a)[0], "x")[None] * a


@programs.found_by()
@rows
def summed_and_used(a):
    return lax.scan(lambda c, v: (jnp.sin(c + lax.psum(v, "x")), None), jnp.zeros(8), a)[0][None] * a


@programs.found_by("SS07")
def accumulated(a):
    products = lax.scan(lambda c, s: (c + 2 * (a.T @ (a * s)), None), jnp.zeros((8, 8)), jnp.arange(3.0))[0]
    return along(jnp.sin(products))


@programs.found_by("SS08")
@rows
def gathered_each_time(a):
    def step(c, _):
        return jnp.tanh(c @ lax.all_gather(a, "x", tiled=True)[:8]), None

    return lax.scan(step, a, None, 5)[0]


@programs.found_by()
@rows
def gathered_once(a):
    whole = lax.all_gather(a, "x", tiled=True)[:8]
    return lax.scan(lambda c, _: (jnp.tanh(c @ whole), None), a, None, 5)[0]


@programs.found_by()
@rows
def gathered_anew(a):
    return lax.scan(lambda c, _: (jnp.tanh(c @ lax.all_gather(c, "x", tiled=True)[:8]), None), a, None, 5)[0]


@programs.found_by("SS39")
def thrown_away(a):
    along(a, "y")
    return jnp.cos(a)


@programs.found_by("SS39")
@rows
def sum_thrown_away(a):
    lax.psum(a, "x")
    return jnp.cos(a)


@programs.found_by()
def constrained_anew(a):
    b = along(a, "y", None)
    return jnp.cos(b)


@programs.found_by("SS19")
@rows
def chain(a):
    return jnp.sin(lax.ppermute(a, "x", [(0, 1), (1, 2), (2, 3)]))


@programs.found_by("SS19")
@rows
def chain_into_a_call(a):
    return jax.jit(lambda b: jnp.sin(b) * 3)(lax.ppermute(a, "x", [(0, 1), (1, 2), (2, 3)]))


@programs.found_by()
@rows
def ring(a):
    return jnp.sin(lax.ppermute(a, "x", [(0, 1), (1, 2), (2, 3), (3, 0)]))


@programs.found_by("SS27")
@rows
def two_shifts(a):
    shifted = lax.ppermute(a, "x", [(i, (i + 1) % 4) for i in range(4)])
    return lax.ppermute(jnp.sin(shifted), "x", [(i, (i + 1) % 4) for i in range(4)])


@programs.found_by()
@rows
def two_shifts_that_are_used(a):
    shifted = lax.ppermute(a, "x", [(i, (i + 1) % 4) for i in range(4)])
    return shifted + lax.ppermute(shifted, "x", [(i, (i + 1) % 4) for i in range(4)])


@programs.found_by()
@rows
def chain_with_a_beginning(a):
    return jnp.where(lax.axis_index("x") == 0, 1.0, lax.ppermute(a, "x", [(0, 1), (1, 2), (2, 3)]))


@programs.found_by("SS22")
@rows
def gathered_and_summed(a):
    return a * jnp.sum(lax.all_gather(jnp.cos(a), "x", tiled=True), axis=0)


@programs.found_by("SS22", "SS10", tpu="SS22")  # TPUs' compiler casts before it gathers
@rows
def stacked_and_maximized(a):
    return a * jnp.max(lax.all_gather(a, "x").astype(jnp.bfloat16), axis=0)


@programs.found_by("SS22")
@rows
def gathered_for_an_accuracy(a):
    whole, labels = (lax.all_gather(each, "x", tiled=True) for each in (jnp.cos(a), jnp.int32(a[:, 0])))
    return a * jnp.mean(jnp.argmax(whole, axis=-1) == labels)


@programs.found_by()
@rows
def smallest_of_all(a):
    return a * jnp.sum(jnp.sort(lax.all_gather(a[:, 0], "x", tiled=True))[:2])


@programs.found_by()
@rows
def similar_among_all(a):
    whole = lax.all_gather(jnp.cos(a), "x", tiled=True)
    return a * jnp.mean(jax.nn.softmax(whole @ whole.T))


@programs.found_by()
@rows
def summed_and_shared(a):
    return a * lax.psum(jnp.sum(jnp.cos(a), axis=0), "x")


@programs.found_by()
@rows
def other_dimension_summed(a):
    return a * jnp.sum(lax.all_gather(a, "x", axis=1, tiled=True), axis=0)[:8]


@programs.found_by("SS21")
@rows
def half_of_them_sum(a):
    return lax.cond(jnp.sum(a) > 2000, lambda b: lax.psum(b, "x"), lambda b: b, a)


@programs.found_by("SS21")
@rows
def the_first_one_sums(a):
    return lax.cond(lax.axis_index("x") == 0, lambda b: lax.psum(b, "x"), lambda b: b, a)


@programs.found_by("SS06")  # where the second branch is taken
@rows
def the_first_one_cuts_along_another_axis(a):
    return lax.cond(lax.axis_index("x") == 0, lambda b: lax.psum(b, "y"), lambda b: b, a * lax.axis_index("y"))


@programs.found_by()
@rows
def all_of_them_sum(a):
    return lax.psum(jnp.where(jnp.sum(a) > 2000, a, 0), "x")


@programs.found_by()
@rows
def all_of_them_choose_alike(a):
    return lax.cond(lax.psum(jnp.sum(a), "x") > 2000, lambda b: lax.psum(b, "x"), lambda b: b, a)


@programs.found_by()
@rows
def they_sum_over_another_axis(a):
    return lax.cond(jnp.sum(a) > 2000, lambda b: lax.psum(b * lax.axis_index("y"), "y"), lambda b: b, a)


@programs.found_by("SS13")
def merged_behind(a):
    return jnp.sin(along(a.T * 2, None, "x").reshape(-1))


@programs.found_by()
def merged_in_front(a):
    return jnp.sin(along(a * 2, "x").reshape(-1))


@programs.found_by("SS13")
def split_in_two(a):
    return along(jnp.cos(a).reshape(2, 16, 8), None, "x")


@programs.found_by("SS02")
def split_and_gathered(a):
    """What the reshape gives is sharded over parts of axes: not that gathers it, but the constraint behind it."""
    parts = along(a * 5, ("x", "y")).reshape(2, 16, 8)
    return along((2 * along(parts + 1)).reshape(32, 8), ("x", "y"))


@programs.found_by()
def split_in_as_many(a):
    return along(jnp.cos(a).reshape(4, 8, 8), "x")


@programs.found_by("SS15", gpu="")  # GPUs sum blocks, and gather what each sums up to
def running_sums(a):
    return along(lax.cumsum(a, axis=0), "x")


@programs.found_by()
@rows
def running_sums_of_parts(a):
    sums = jnp.cumsum(a, axis=0)
    totals = lax.all_gather(sums[-1], "x")
    before = jnp.arange(4) < lax.axis_index("x")
    return sums + jnp.sum(jnp.where(before[:, None], totals, 0), axis=0)


@programs.found_by("SS15")
def rows_somewhere(a):
    return lax.dynamic_slice_in_dim(a, jnp.int32(a[0, 0]), 4)


@programs.found_by()
def running_sums_of_columns(a):
    return along(jnp.cumsum(a, axis=1), "x")


@programs.found_by("SS16", tpu="", gpu="")  # there is no host to call: the report says so
def called_back(a):
    cut = along(jnp.sin(a), "x")
    return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(a.shape, a.dtype), cut)


@programs.found_by()
@rows
def called_back_with_parts(a):
    return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(a.shape, a.dtype), jnp.sin(a))


@programs.found_by("SS01", gpu="")  # the lookup is summed over x; of so little nothing is saved there
def looked_up(a):
    return along(along(a, "x", "y")[jnp.arange(16) % 5], "x")


@programs.found_by("SS40")
@checked
def summed_and_stacked(a):
    return 3 * jax.grad(lambda w: jnp.sum(jnp.sin(a @ w)))(jnp.ones((8, 4)))[None]


@programs.found_by()
@checked
def own_of_each(a):
    return 3 * jax.grad(lambda w: jnp.sum(jnp.sin(a @ w)))(lax.pcast(jnp.ones((8, 4)), "x", to="varying"))[None]


@programs.found_by()
@partial(checked, out_specs=(P("x"), P()))
def summed_norm(a):
    gradient = jax.grad(lambda w: jnp.sum(jnp.sin(a @ w)))(jnp.ones((8, 4)))
    return jnp.sum(gradient**2, axis=1)[None], 1 - gradient


def program(a):
    # Each on numbers of its own, so that none is left out as another one's double.
    return [each(along(a * (1 + number), "x")) for number, each in enumerate(programs)]


program_inputs = (jax.ShapeDtypeStruct((32, 8), jnp.float32, sharding=NamedSharding(mesh, P("x"))),)


donated = jax.jit(lambda a, b: ((2 * a).astype(jnp.bfloat16), b + 1), donate_argnums=0)
used = jax.jit(lambda a, b: (2 * a, b + 1), donate_argnums=0)
donated_inputs = used_inputs = (program_inputs[0], jax.ShapeDtypeStruct((3,), jnp.int32))


def look_up(table, ids):
    return table[ids].sum(1)


table, ids = jax.ShapeDtypeStruct((262144, 1024), jnp.float32), jax.ShapeDtypeStruct((64, 8), jnp.int32)
replicated = cut = look_up
replicated_inputs = table.update(sharding=NamedSharding(mesh, P())), ids
cut_inputs = table.update(sharding=NamedSharding(mesh, P(("x", "y")))), ids
