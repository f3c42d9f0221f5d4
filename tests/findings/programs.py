"""One fault, spelled in many ways, beside what only looks like it."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
mapped = partial(jax.shard_map, mesh=mesh, in_specs=P(), out_specs=P(("x", "y")), check_vma=False)
a = (jnp.arange(64.0).reshape(16, 4),)


def own(value, axis="x", shift=0):
    rows = value.shape[0] // lax.axis_size(axis)
    return lax.dynamic_slice_in_dim(value, ((lax.axis_index(axis) + shift) % lax.axis_size(axis)) * rows, rows)


def differing(a):
    return a * (1 + lax.axis_index(("x", "y")))


scaled = mapped(lambda a: own(2 * lax.psum(differing(a), "x")))
cast = mapped(lambda a: own(lax.psum(differing(a), "x").astype(jnp.bfloat16)))
biased = mapped(lambda a: own(jnp.tanh(lax.psum(differing(a), "x") + a)))
nested = mapped(lambda a: jax.jit(own)(lax.psum(differing(a), "x")))
remat = mapped(lambda a: own(jax.checkpoint(lambda v: lax.psum(differing(v), "x"))(a)))
both_axes = mapped(lambda a: own(lax.psum(differing(a), ("x", "y")), ("x", "y")))
one_of_two = mapped(lambda a: own(lax.psum(differing(a), ("x", "y")), "y"))
in_scan = mapped(lambda a: lax.scan(lambda c, _: (c + 1, own(lax.psum(differing(c), "x"))), a, None, 3)[1][0])

neighbours = mapped(lambda a: own(lax.psum(differing(a), "x"), shift=1))
used_twice = mapped(lambda a: own(total := lax.psum(differing(a), "x")) + jnp.max(total))
other_axis = mapped(lambda a: own(lax.psum(differing(a), "x"), "y"))
normalized = mapped(lambda a: own(jax.nn.softmax(lax.psum(differing(a), "x"), axis=0)))

FOUND = ("scaled", "cast", "biased", "nested", "remat", "both_axes", "one_of_two", "in_scan")
CLEAN = ("neighbours", "used_twice", "other_axis", "normalized")
globals().update({f"{name}_inputs": a for name in (*FOUND, *CLEAN)})

unchecked = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
left_out = unchecked(lambda v: jnp.sum(v))
summed = unchecked(lambda v: lax.psum(jnp.sum(v), "x"))
left_out_inputs = summed_inputs = (jnp.arange(8.0),)
