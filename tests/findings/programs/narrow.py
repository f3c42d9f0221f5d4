"""SS10: what travels wide and is needed narrow, beside what is needed as it is. CPUs are never told of it."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
rows = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
programs, FOUND, CLEAN = [], {}, []


def faulty(rule):
    def register(function):
        FOUND[function.__name__] = rule
        programs.append(function)
        return function

    return register


def clean(function):
    CLEAN.append(function.__name__)
    programs.append(function)
    return function


@clean  # TPUs' compiler casts first
@rows
def narrowed(a):
    return jnp.sin(lax.all_to_all(a, "x", 0, 0, tiled=True).astype(jnp.bfloat16))


@faulty("SS10")
@rows
def widened(a):
    return jnp.cos(lax.ppermute(a.astype(jnp.bfloat16).astype(jnp.float32), "x", [(i, (i + 1) % 8) for i in range(8)]))


@clean
@rows
def narrow_already(a):
    return jnp.sin(lax.all_to_all(a.astype(jnp.bfloat16), "x", 0, 0, tiled=True))


@clean
@rows
def used_wide(a):
    b = lax.all_to_all(a, "x", 0, 0, tiled=True)
    return b + b.astype(jnp.bfloat16)


def program(a):
    return [each(a * (1 + number)) for number, each in enumerate(programs)]


program_inputs = (jnp.ones((256, 128)),)
