"""SS03: sums of the backward pass that the check would spare, in many spellings, and the same with the check on."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from registry import Programs

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
both = ("x", "y")  # what only one of them cuts, the other sums in the backward pass as well
specs = {"mesh": mesh, "in_specs": (P(None, both), P(both)), "out_specs": P()}
unchecked = partial(jax.shard_map, **specs, check_vma=False)
checked = partial(jax.shard_map, **specs, check_vma=True)
programs = Programs()


@programs.found_by("SS03")
@unchecked
def plain(a, b):
    return jnp.sum(lax.psum(a @ b, both) ** 2)


@programs.found_by("SS03")
@unchecked
def cast(a, b):
    return jnp.sum(lax.psum((a @ b).astype(jnp.bfloat16), both).astype(jnp.float32) ** 2)


@programs.found_by("SS03")
@unchecked
def scaled(a, b):
    return jnp.sum(jnp.sin(3 * lax.psum(2 * (a @ b), both)))


@programs.found_by("SS03")
@unchecked
def mean(a, b):
    return jnp.sum(lax.pmean(a @ b, both) ** 2)


@programs.found_by("SS03")
@unchecked
def transposed(a, b):
    return jnp.sum(lax.psum(a @ b, both).T.reshape(-1) ** 2)


@programs.found_by("SS03")
@unchecked
def pair(a, b):
    one, other = lax.psum((a @ b, a.sum(1)), both)
    return jnp.sum(one**2) + jnp.sum(other**2)


@programs.found_by("SS03")
@unchecked
def nested(a, b):
    return jax.jit(lambda a, b: jnp.sum(jnp.cos(lax.psum(a @ b, both))))(a, b)


@programs.found_by("SS03")
@unchecked
def remat(a, b):
    return jnp.sum(jax.checkpoint(lambda a, b: lax.psum(jnp.tanh(a @ b), both))(a, b) ** 2)


@programs.found_by("SS03", gpu="SS03 SS08")  # the sum does not change from one iteration to the next
@unchecked
def in_scan(a, b):
    return jnp.sum(
        lax.scan(lambda c, _: (c + lax.psum(jnp.sin(a @ b), both), None), jnp.zeros((8, 4)), None, 3)[0] ** 2
    )


@programs.found_by("SS03", "SS28")
@unchecked
def one_after_the_other(a, b):
    return jnp.sum(lax.psum(lax.psum(a @ b, "x") * 2, "y") ** 2)


@programs.found_by()
@checked
def with_the_check(a, b):
    return jnp.sum(lax.psum(a @ b, both) ** 2)


@programs.found_by()
@checked
def mean_with_the_check(a, b):
    return jnp.sum(lax.pmean(a @ b, both) ** 2)


@programs.found_by()
def used_with_own_values(a, b):
    def rows(a, b):
        return jnp.sin(lax.psum(a @ b, both)) * (1 + lax.axis_index("x"))

    return jnp.sum(jax.shard_map(rows, mesh=mesh, in_specs=specs["in_specs"], out_specs=P(both), check_vma=False)(a, b))


@programs.found_by()
def gathered_for_own_rows(a, b):
    def rows(a, b):
        return jnp.cos(a.T @ lax.all_gather(b, both, tiled=True))

    return jnp.sum(jax.shard_map(rows, mesh=mesh, in_specs=specs["in_specs"], out_specs=P(both), check_vma=False)(a, b))


def program(a, b):
    return [jax.grad(each, argnums=1)(a * (1 + number), b) for number, each in enumerate(programs)]


program_inputs = (jnp.arange(64.0).reshape(8, 8) / 64, jnp.arange(32.0).reshape(8, 4) / 32)
