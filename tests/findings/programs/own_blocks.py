"""SS01 and SS02 as one writes them by hand, in many spellings, beside what only looks like them.

One function is captured: it calls all of these, and a finding is told by the function that it stands in.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from registry import Programs

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
unchecked = partial(jax.shard_map, mesh=mesh, in_specs=P(), out_specs=P(("x", "y")), check_vma=False)
checked = partial(jax.shard_map, mesh=mesh, in_specs=P(("x", "y")), out_specs=P(("x", "y")))
programs = Programs()


def own(value, axis="x", shift=0, dim=0):
    rows = value.shape[dim] // lax.axis_size(axis)
    return lax.dynamic_slice_in_dim(
        value, ((lax.axis_index(axis) + shift) % lax.axis_size(axis)) * rows, rows, axis=dim
    )


def differing(a):
    return a * (1 + lax.axis_index(("x", "y")))


@programs.found_by("SS01")
@unchecked
def scaled(a):
    return own(2 * lax.psum(differing(a), "x"))


@programs.found_by("SS01", "SS10")
@unchecked
def cast(a):
    return own(lax.psum(differing(a), "x").astype(jnp.bfloat16))


@programs.found_by("SS01")
@unchecked
def biased(a):
    return own(jnp.tanh(lax.psum(differing(a), "x") + a))


@programs.found_by("SS01")
@unchecked
def mean(a):
    return own(lax.pmean(differing(a), "x"))


@programs.found_by("SS01")
@unchecked
def under_vmap(a):
    return jax.vmap(lambda a: own(lax.psum(differing(a), "x")))(jnp.stack([a, 2 * a]))[0]


@programs.found_by()
@unchecked
def each_another_block_under_vmap(a):
    total = lax.psum(differing(a), "x")
    starts = lax.axis_index("x") * (len(a) // 4) + jnp.arange(2)
    return jax.vmap(lambda start: lax.dynamic_slice_in_dim(total, start, len(a) // 4))(starts)[0]


@programs.found_by("SS01")
@unchecked
def nested(a):
    return jax.jit(own)(lax.psum(differing(a), "x"))


@programs.found_by("SS01")
@unchecked
def remat(a):
    return own(jax.checkpoint(lambda v: lax.psum(differing(v), "x"))(a))


@programs.found_by("SS01")
@unchecked
def custom(a):
    @jax.custom_vjp
    def total(v):
        return lax.psum(v, "x")

    total.defvjp(lambda v: (total(v), None), lambda _, g: (g,))
    return own(total(differing(a)))


@programs.found_by("SS01")
@unchecked
def both_axes(a):
    return own(lax.psum(differing(a), ("x", "y")), ("x", "y"))


@programs.found_by("SS01")
@unchecked
def one_of_two(a):
    return own(lax.psum(differing(a), ("x", "y")), "y")


@programs.found_by("SS01")
@unchecked
def in_scan(a):
    return lax.scan(lambda c, _: (c + 1, own(lax.psum(differing(c), "x"))), a, None, 3)[1][0]


@programs.found_by("SS01")
@unchecked
def sliced_in_scan(a):
    total = lax.psum(differing(a), "x")
    return lax.scan(lambda c, _: (c + own(total), None), jnp.zeros((4, 8)), None, 3)[0]


@programs.found_by("SS01")
@unchecked
def pair(a):
    one, _ = lax.psum((differing(a), jnp.float32(1)), "x")
    return own(one)


@programs.found_by("SS01")
@unchecked
def transposed(a):
    return own(lax.psum(differing(a), "x").T, dim=1)


@programs.found_by("SS01")
@unchecked
def reshaped(a):
    return lax.psum(differing(a), "x").reshape(4, 4, 8)[lax.axis_index("x")]


@programs.found_by("SS01")
@unchecked
def taken(a):
    return jnp.take(lax.psum(differing(a), "x"), lax.axis_index("x") * 4 + jnp.arange(4), axis=0)


@programs.found_by("SS01")
@unchecked
def multiplied(a):
    return own(jnp.einsum("ij,kj->ik", lax.psum(differing(a), "x"), a))


@programs.found_by("SS01")
@checked
def with_the_check(a):
    return own(lax.psum(jnp.tile(a, (4, 1)), "x"))


@programs.found_by("SS02")
@unchecked
def gathered(a):
    return own(jnp.sin(lax.all_gather(differing(a), "x", tiled=True)))


@programs.found_by("SS02")
@unchecked
def stacked(a):
    return lax.all_gather(differing(a), "x")[lax.axis_index("x")]


@programs.found_by("SS02")
@unchecked
def gathered_and_cast(a):
    return own(lax.all_gather(differing(a).astype(jnp.bfloat16), "x", tiled=True).astype(jnp.float32) * 3)


@programs.found_by("SS02")
@unchecked
def gathered_columns(a):
    return own(lax.all_gather(differing(a), "x", axis=1, tiled=True).T)


@programs.found_by("SS02")
@unchecked
def exchanged(a):
    return own(lax.all_gather(differing(a), "x", axis=1, tiled=True))


@programs.found_by("SS02")
@unchecked
def gathered_in_scan(a):
    def step(carry, _):
        return own(lax.all_gather(differing(carry), "x", tiled=True)), None

    return lax.scan(step, a, None, 3)[0]


@programs.found_by("SS02")
@unchecked
def gathered_along_both(a):
    return own(lax.all_gather(differing(a), ("x", "y"), tiled=True), ("x", "y"))


@programs.found_by("SS02")
@unchecked
def gathered_in_remat(a):
    return own(jax.checkpoint(lambda v: jnp.cos(lax.all_gather(v, "x", tiled=True)))(differing(a)))


@programs.found_by("SS02")
@unchecked
def gathered_in_jit(a):
    return jax.jit(lambda whole: own(whole) + 1)(lax.all_gather(differing(a), "x", tiled=True))


@programs.found_by("SS02")
@checked
def gathered_with_the_check(a):
    return own(lax.all_gather(a, "x", tiled=True))


@programs.found_by("SS01")
@unchecked
def neighbours(a):
    return own(lax.psum(differing(a), "x"), shift=1)


@programs.found_by()
@unchecked
def used_twice(a):
    return own(total := lax.psum(differing(a), "x")) + jnp.max(total)


@programs.found_by()
@unchecked
def other_axis(a):
    return own(lax.psum(differing(a), "x"), "y")


@programs.found_by("SS01")
@unchecked
def normalized(a):
    return own(jax.nn.softmax(lax.psum(differing(a), "x"), axis=0))


@programs.found_by("SS01")
@unchecked
def both_ways(a):
    total = lax.psum(differing(a)[:8], "x")
    return own(total + total.T)


@programs.found_by()
@unchecked
def half_of_a_block(a):
    return lax.dynamic_slice_in_dim(lax.psum(differing(a), "x"), lax.axis_index("x") * 4, 2)


@programs.found_by("SS01")
@unchecked
def across_blocks(a):
    return own(lax.psum(differing(a), "x").reshape(8, 16), dim=1)


@programs.found_by("SS01")
@unchecked
def reversed_blocks(a):
    return own(lax.rev(lax.psum(differing(a), "x"), (0,)))


@programs.found_by("SS02")
@unchecked
def gathered_neighbours(a):
    return own(lax.all_gather(differing(a), "x", tiled=True), shift=1)


@programs.found_by("SS02")
@unchecked
def gathered_and_summed(a):
    whole = lax.all_gather(differing(a), "x", tiled=True)
    return own(whole - whole.mean(0))


def program(a):
    # Each on numbers of its own, so that none is left out as another one's double.
    return [each(a * (1 + number)) for number, each in enumerate(programs)]


program_inputs = (jnp.arange(128.0).reshape(16, 8),)
