"""SS06: what leaves an unchecked shard_map, with a run and without one."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from registry import Programs

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
unchecked = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
left_out = unchecked(lambda v: jnp.sum(v))
summed = unchecked(lambda v: lax.psum(jnp.sum(v), "x"))
returned = jax.shard_map(lambda v: v, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
named = jax.shard_map(lambda v: v, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
alone = jax.make_mesh((4, 1), ("x", "z"), axis_types=(AxisType.Auto,) * 2)
along_one = jax.shard_map(lambda v: v, mesh=alone, in_specs=P("z"), out_specs=P(), check_vma=False)
named_inputs = along_one_inputs = left_out_inputs = summed_inputs = returned_inputs = (jnp.arange(8.0),)

programs = Programs()
ring = [(0, 1), (1, 2), (2, 3), (3, 0)]


@programs.found_by("SS06")
@unchecked
def of_own_rows(v):
    return jnp.sum(v)


@programs.found_by("SS06")
@unchecked
def in_a_loop(v):
    return lax.scan(lambda total, row: (total + jnp.sin(row), None), 0.0, v)[0]


@programs.found_by("SS06")
@unchecked
def over_the_other_axis(v):
    return jax.checkpoint(lambda v: lax.psum(jnp.sum(v) * lax.axis_index("y"), "y"))(v)


@programs.found_by("SS06")
@unchecked
def position(v):
    return lax.axis_index("x") * 2


@programs.found_by("SS06")
@unchecked
def of_scattered(v):
    return jnp.sum(lax.psum_scatter(jnp.arange(4.0) * v.sum(), "x"))


@programs.found_by()
@unchecked
def scattered_and_summed(v):
    return lax.psum(lax.psum_scatter(jnp.arange(4.0) * v.sum(), "x") ** 2, "x")


@programs.found_by()
@unchecked
def ring_of_scattered(v):
    total = block = lax.psum_scatter(jnp.arange(4.0) * v.sum(), "x")
    for _ in range(3):
        block = lax.ppermute(block, "x", ring)
        total = jnp.maximum(total, block)
    return total


@programs.found_by()
@unchecked
def count(v):
    return jnp.float32(v.size) + jnp.zeros_like(v).sum()


@programs.found_by()
@unchecked
def ring_sum(v):
    total = block = jnp.max(v)
    for _ in range(3):
        block = lax.ppermute(block, "x", ring)
        total = jnp.maximum(total, block)
    return total


@programs.found_by()
@unchecked
def first_of_all(v):
    return lax.all_gather(v, "x")[0]


@programs.found_by()
@unchecked
def added(v):
    return lax.cond(True, lambda v: lax.psum(v.sum(), "x"), lambda v: lax.psum(v.sum(), "x") / 2, v)


def program(v):
    return [each(v) for each in programs]


program_inputs = (jnp.arange(8.0) ** 2,)
