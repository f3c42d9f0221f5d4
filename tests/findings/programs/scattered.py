"""SS30: reductions of blocks that a reduce-scatter gave, beside reductions of such blocks that mean something."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from registry import Programs

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
unchecked = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
checked = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
programs = Programs()


def scattered(a, axis="x"):
    return lax.psum_scatter(lax.all_gather(a, axis, tiled=True) * (1 + lax.axis_index(axis)), axis, tiled=True)


def loss(w, a):
    return jnp.mean((a @ lax.all_gather(w, "x", tiled=True).T) ** 2)


def varying(value):
    return lax.pcast(value, "x", to="varying")


@programs.found_by("SS30")
@unchecked
def mean_of_gradients(a):
    return lax.pmean(jax.grad(loss)(a, a), "x")


@programs.found_by("SS30")
@checked
def mean_of_gradients_with_the_check(a):
    return varying(lax.pmean(jax.grad(loss)(a, a), "x"))


@programs.found_by("SS10", "SS30", tpu="SS30", gpu="SS30")  # what is scattered is rounded, and then summed
@unchecked
def sum_by_name(a):
    return 0.5 * lax.psum(scattered(a).astype(jnp.bfloat16), "x").astype(jnp.float32)


@programs.found_by("SS30")
@unchecked
def over_both_axes(a):
    return lax.psum(scattered(a) * (1 + lax.axis_index("y")), ("x", "y"))


@programs.found_by("SS30")
@unchecked
def clipped(a):
    gradient = scattered(a)
    norm = jnp.sqrt(lax.psum(jnp.sum(gradient**2), "x"))
    return lax.psum(gradient / jnp.maximum(norm, 1), "x")


@programs.found_by("SS30", "SS07", "SS08", tpu="SS30 SS08")
@unchecked
def accumulated(a):
    def add(total, part):
        return total + jax.grad(loss)(a, part), None

    total, _ = lax.scan(add, jnp.zeros_like(a), a.reshape(2, 2, 8))
    return lax.pmean(total, "x")


@programs.found_by("SS30")
@unchecked
def of_two(a):
    return lax.psum(scattered(a) + scattered(2 * a), "x")


@programs.found_by("SS30")
@unchecked
def scattered_again(a):
    return jnp.tile(lax.psum_scatter(scattered(a), "x", tiled=True), (4, 1))


@programs.found_by()
@unchecked
def over_the_other_axis(a):
    return lax.pmean(scattered(a) * (1 + lax.axis_index("y")), "y")


@programs.found_by()
@unchecked
def norm(a):
    gradient = scattered(a)
    return gradient * lax.rsqrt(lax.psum(jnp.sum(gradient**2), "x"))


@programs.found_by()
@unchecked
def largest(a):
    gradient = scattered(a)
    return gradient / lax.pmax(jnp.max(jnp.abs(gradient)), "x")


@programs.found_by()
@unchecked
def block_of_the_first(a):
    return lax.psum(jnp.where(lax.axis_index("x") == 0, scattered(a), 0), "x")


@programs.found_by()
@unchecked
def blocks_of_one_row(a):
    return a + lax.psum(lax.psum_scatter(a * (1 + lax.axis_index("x")), "x", tiled=True), "x")


@programs.found_by()
@unchecked
def rows(a):
    each = lax.psum_scatter(a * (1 + lax.axis_index("x")), "x")
    return a + lax.pmean(each, "x")


@programs.found_by()
@unchecked
def gathered_and_summed(a):
    whole = lax.all_gather(scattered(a), "x", tiled=True)
    return lax.psum_scatter(whole * (1 + lax.axis_index("x")), "x", tiled=True)


@programs.found_by()
@checked
def backward_of_a_cast(a):
    def of_a_copy(w):
        return jnp.sum(lax.all_gather(varying(w), "x", tiled=True) * (1 + lax.axis_index("x")))

    return a + varying(jax.grad(of_a_copy)(jnp.ones((4, 8))))


def program(a):
    # Each on numbers of its own, so that none is left out as another one's double.
    return [each(a * (1 + number)) for number, each in enumerate(programs)]


program_inputs = (jnp.arange(128.0).reshape(16, 8),)
