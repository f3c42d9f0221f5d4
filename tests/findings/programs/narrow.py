"""SS10: what travels wide and is needed narrow, beside what is needed as it is.

Compilers for GPUs and TPUs may cast first. CPUs send what the program says, though widened.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from registry import Programs

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
rows = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
programs = Programs()


@programs.found_by("SS10", tpu="", gpu="")
@rows
def narrowed(a):
    return jnp.sin(lax.all_to_all(a, "x", 0, 0, tiled=True).astype(jnp.bfloat16))


@programs.found_by("SS10", gpu="")
@rows
def widened(a):
    return jnp.cos(lax.ppermute(a.astype(jnp.bfloat16).astype(jnp.float32), "x", [(i, (i + 1) % 8) for i in range(8)]))


@programs.found_by()
@rows
def narrow_already(a):
    return jnp.sin(lax.all_to_all(a.astype(jnp.bfloat16), "x", 0, 0, tiled=True))


@programs.found_by()
@rows
def used_wide(a):
    b = lax.all_to_all(a, "x", 0, 0, tiled=True)
    return b + b.astype(jnp.bfloat16)


@programs.found_by("SS10")
@rows
def mean_that_is_rounded(a):
    return jnp.tan(lax.pmean(jnp.sin(a), "x").astype(jnp.bfloat16))


@programs.found_by()
@rows
def mean_of_what_was_widened(a):
    return jnp.tan(lax.pmean(a.astype(jnp.bfloat16).astype(jnp.float32), "x"))


def program(a):
    return [each(a * (1 + number)) for number, each in enumerate(programs)]


program_inputs = (jnp.ones((256, 128)),)
