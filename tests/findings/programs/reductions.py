"""SS04: reductions of what is equal already, in many spellings, beside what only looks like them."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from registry import Programs

mesh = jax.make_mesh((4, 2, 1), ("x", "y", "one"), axis_types=(AxisType.Auto,) * 3)
specs = {"mesh": mesh, "in_specs": (P(), P("x")), "out_specs": P("x")}
unchecked = partial(jax.shard_map, **specs, check_vma=False)
checked = partial(jax.shard_map, **specs)
programs = Programs()


@programs.found_by("SS04")
@unchecked
def plain(w, a):
    return a + lax.psum(w, "x")


@programs.found_by("SS04")
@checked
def with_the_check(w, a):
    return a + lax.psum(jnp.sum(w**2), "x")


@programs.found_by("SS04")
@unchecked
def cast(w, a):
    return a + lax.psum(w.astype(jnp.bfloat16), "x").astype(jnp.float32)


@programs.found_by("SS04")
@unchecked
def of_a_sum(w, a):
    return a + lax.psum(jnp.sin(lax.psum(a, "x")), "x")


@programs.found_by("SS04")
@unchecked
def of_a_gathered(w, a):
    return a + lax.psum(lax.all_gather(a, "x", tiled=True)[::4], "x")


@programs.found_by("SS04")
@unchecked
def one_of_two(w, a):
    return a + lax.psum(a * 2, ("x", "y"))


@programs.found_by("SS04")
@unchecked
def of_a_sum_over_another_axis(w, a):
    return a + lax.pmean(lax.psum(a * 2, "x"), "y")


@programs.found_by("SS04")
@unchecked
def two_on_one_line(w, a):
    return a + (lax.psum(w * 7, "x") + lax.psum(a * 8, "x"))


@programs.found_by("SS04")
@unchecked
def a_mean_by_hand(w, a):
    return a + (lax.psum(w + 3, "x")) / 4


@programs.found_by("SS04")
@unchecked
def pair(w, a):
    total, extra = lax.psum((a, w * 3), "x")
    return a + total + extra


@programs.found_by("SS04")
@unchecked
def of_a_tree(w, a):
    total, extra = jax.tree.map(lambda v: lax.psum(v, "x"), (a, w * 3))
    return a + total + extra


@programs.found_by("SS04")
@unchecked
def mean(w, a):
    return a + lax.pmean(jnp.cos(w), "x")


@programs.found_by("SS04")
@unchecked
def largest(w, a):
    return a + lax.pmax(w.T, "x").T


@programs.found_by("SS04")
@unchecked
def in_scan(w, a):
    return lax.scan(lambda c, _: (c + lax.psum(w, "x"), None), a, None, 3)[0]


@programs.found_by("SS04")
@unchecked
def nested(w, a):
    return a + jax.jit(lambda v: lax.psum(jnp.reshape(v, -1), "x"))(w).reshape(w.shape)


@programs.found_by("SS04")
@unchecked
def remat(w, a):
    return a + jax.checkpoint(lambda v: lax.psum(jnp.tanh(v), "x"))(w)


@programs.found_by("SS04")
@unchecked
def custom(w, a):
    @jax.custom_vjp
    def total(v):
        return lax.psum(v * 5, "x")

    total.defvjp(lambda v: (total(v), None), lambda _, g: (g,))
    return a + total(w)


@programs.found_by()
@unchecked
def of_what_differs(w, a):
    return a + lax.psum(a, "x")


@programs.found_by()
@unchecked
def of_what_an_index_makes_differ(w, a):
    return a + lax.psum(w * lax.axis_index("x"), "x")


@programs.found_by()
@unchecked
def of_a_part(w, a):
    return a + lax.psum(lax.dynamic_slice_in_dim(w, lax.axis_index("x"), 1), "x")


@programs.found_by()
@unchecked
def counted(w, a):
    return a * lax.psum(1, "x") + lax.psum(jnp.ones(()), "x")


@programs.found_by()
@unchecked
def chosen(w, a):
    return a + lax.psum(jnp.where(lax.axis_index("x") == 0, w, 0), "x")


@programs.found_by()
@unchecked
def carried(w, a):
    return a + lax.psum(lax.scan(lambda c, _: (c + a, None), w, None, 3)[0], "x")


@programs.found_by()
@unchecked
def over_one_device(w, a):
    return a + lax.psum(w, "one")


@programs.found_by("SS04")
@unchecked
def gathered_copies(w, a):
    return a * lax.all_gather(w * 21, "x")[1]


@programs.found_by()
@unchecked
def gathered_parts(w, a):
    return a * lax.all_gather(w * (lax.axis_index("x") + 22), "x")[1]


def program(w, a):
    return [each(w * (1 + number), a) for number, each in enumerate(programs)]


program_inputs = (jnp.ones((4, 4)), jnp.arange(64.0).reshape(16, 4))
