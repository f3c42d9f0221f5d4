"""SS03: sums of the backward pass that the check would spare, in many spellings, and the same with the check on."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
both = ("x", "y")  # what only one of them cuts, the other sums in the backward pass as well
specs = {"mesh": mesh, "in_specs": (P(None, both), P(both)), "out_specs": P()}
unchecked = partial(jax.shard_map, **specs, check_vma=False)
checked = partial(jax.shard_map, **specs, check_vma=True)
programs, FOUND, CLEAN = [], {}, []


def faulty(rule, mapped=unchecked):
    def register(function):
        FOUND[function.__name__] = rule
        programs.append(mapped(function))
        return function

    return register


def clean(function):
    CLEAN.append(function.__name__)
    programs.append(checked(function))
    return function


@faulty("SS03")
def plain(a, b):
    return jnp.sum(lax.psum(a @ b, both) ** 2)


@faulty("SS03")
def cast(a, b):
    return jnp.sum(lax.psum((a @ b).astype(jnp.bfloat16), both).astype(jnp.float32) ** 2)


@faulty("SS03")
def scaled(a, b):
    return jnp.sum(jnp.sin(3 * lax.psum(2 * (a @ b), both)))


@faulty("SS03")
def mean(a, b):
    return jnp.sum(lax.pmean(a @ b, both) ** 2)


@faulty("SS03")
def transposed(a, b):
    return jnp.sum(lax.psum(a @ b, both).T.reshape(-1) ** 2)


@faulty("SS03")
def pair(a, b):
    one, other = lax.psum((a @ b, a.sum(1)), both)
    return jnp.sum(one**2) + jnp.sum(other**2)


@faulty("SS03")
def nested(a, b):
    return jax.jit(lambda a, b: jnp.sum(jnp.cos(lax.psum(a @ b, both))))(a, b)


@faulty("SS03")
def remat(a, b):
    return jnp.sum(jax.checkpoint(lambda a, b: lax.psum(jnp.tanh(a @ b), both))(a, b) ** 2)


@faulty("SS03")
def in_scan(a, b):
    return jnp.sum(
        lax.scan(lambda c, _: (c + lax.psum(jnp.sin(a @ b), both), None), jnp.zeros((8, 4)), None, 3)[0] ** 2
    )


@faulty("SS03")
def one_after_the_other(a, b):
    return jnp.sum(lax.psum(lax.psum(a @ b, "x") * 2, "y") ** 2)


@clean
def with_the_check(a, b):
    return jnp.sum(lax.psum(a @ b, both) ** 2)


@clean
def mean_with_the_check(a, b):
    return jnp.sum(lax.pmean(a @ b, both) ** 2)


def program(a, b):
    return [jax.grad(each, argnums=1)(a * (1 + number), b) for number, each in enumerate(programs)]


program_inputs = (jnp.arange(64.0).reshape(8, 8) / 64, jnp.arange(32.0).reshape(8, 4) / 32)
