"""Communication of transposed psums and all_gathers, checked and unchecked.

Five linear functions, each transposed. Without the check, a transpose can not know which cotangents all devices share,
and reduces them in defence. With it the types say so: a psum that leaves through an unmapped output transposes to
nothing, the identity to the identity. Where the cotangents do differ, both ways reduce, and rightly. The numbers are
the same in every pair; `…_unchecked` has the check off.
"""

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

DEVICES = 8
mesh = jax.make_mesh((DEVICES,), ("i",), axis_types=(AxisType.Auto,))
numbers = jnp.arange(DEVICES, dtype=jnp.float32)
factors = 1 + jnp.arange(DEVICES * DEVICES, dtype=jnp.float32)


def transposed(body, in_specs, out_specs, *constants, check):
    """The transpose of a `shard_map` of `body` in its first argument, a vector; the others are constants."""
    mapped = jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check)

    def transpose(cotangent):
        (result,) = jax.linear_transpose(lambda x: mapped(x, *constants), numbers)(cotangent)
        return result

    return jax.jit(transpose)


def sum_shared(*, check):
    """A psum that leaves unmapped, as a total loss does: its cotangent is the same everywhere."""
    return transposed(lambda x: lax.psum(3 * x, "i"), P("i"), P(), check=check)


def sum_used(*, check):
    """A psum that each device goes on to use in its own way: the cotangents differ and must be summed."""
    return transposed(lambda x, y: lax.psum(3 * x, "i") * y, (P("i"), P("i")), P("i"), numbers, check=check)


def same(*, check):
    """A value in and out as it is, unmapped both ways."""
    return transposed(lambda x: x, P(), P(), check=check)


def gather_shared(*, check):
    """All blocks to all devices, leaving unmapped. Checked, `out_specs` does the gathering: the types ask for that."""
    if check:
        return transposed(lambda x: x, P("i"), P("i"), check=True)
    return transposed(lambda x: lax.all_gather(x, "i", tiled=True), P("i"), P(), check=False)


def gather_used(*, check):
    """All blocks to all devices, used by each in its own way: its transpose is a reduce-scatter."""
    specs = (P("i"), P("i"))
    return transposed(lambda x, y: lax.all_gather(x, "i", tiled=True) * y, specs, P("i"), factors, check=check)


psum_to_invariant, psum_to_invariant_unchecked = sum_shared(check=True), sum_shared(check=False)
psum_to_varying, psum_to_varying_unchecked = sum_used(check=True), sum_used(check=False)
identity, identity_unchecked = same(check=True), same(check=False)
gather_to_invariant, gather_to_invariant_unchecked = gather_shared(check=True), gather_shared(check=False)
gather_to_varying, gather_to_varying_unchecked = gather_used(check=True), gather_used(check=False)

psum_to_invariant_inputs = psum_to_invariant_unchecked_inputs = (jnp.ones(1),)
psum_to_varying_inputs = psum_to_varying_unchecked_inputs = (1 + numbers,)
identity_inputs = identity_unchecked_inputs = (1 + numbers,)
gather_to_invariant_inputs = gather_to_invariant_unchecked_inputs = (1 + numbers,)
gather_to_varying_inputs = gather_to_varying_unchecked_inputs = (jnp.ones_like(factors),)

if __name__ == "__main__":
    print(psum_to_varying(*psum_to_varying_inputs), psum_to_varying_unchecked(*psum_to_varying_inputs))
