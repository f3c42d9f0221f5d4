"""Sums that the partitioner makes, and of which devices use their own blocks alone, or more than these."""

import jax
import jax.numpy as jnp
from jax import NamedSharding, lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from registry import Programs

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
programs = Programs()


def along(value, *axes):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*axes)))


def summed(a, b):
    """A product that is summed over x."""
    return along(along(a, None, "x") @ along(b, "x", None))


@programs.found_by("SS01")
def at_once(a, b):
    return along(along(a, None, "x") @ along(b, "x", None), "x")


@programs.found_by("SS01")
def second_dimension(a, b):
    return along(along(a, None, "x") @ along(b, "x", None), None, "x")


@programs.found_by("SS01")
def scaled(a, b):
    return along(jnp.tanh(summed(a, b)) * 2 + a, "x")


@programs.found_by("SS01")
def transposed(a, b):
    return along(summed(a, b).T, None, "x")


@programs.found_by("SS01")
def split(a, b):
    return along(summed(a, b).reshape(8, 2, 16), "x")


@programs.found_by("SS01")
def used_twice(a, b):
    whole = summed(a, b)
    return along(jnp.sin(whole), "x") + along(jnp.cos(whole), "x")


@programs.found_by("SS01")
def in_a_loop(a, b):
    return lax.scan(lambda c, _: (along(summed(c, b) + 1, "x"), None), along(a, "x"), None, 3)[0]


@programs.found_by()
def used_whole(a, b):
    return along(summed(a, b)) + 1


@programs.found_by()
def used_both_ways(a, b):
    whole = summed(a, b)
    return along(whole * 2, "x") + jnp.max(whole)


@programs.found_by("SS01")
def different_blocks(a, b):
    whole = summed(a, b)
    return along(jnp.sin(whole), "x") @ along(jnp.cos(whole), None, "x")


@programs.found_by()
def over_another_axis(a, b):
    return along(along(a, None, "x") @ along(b, "x", None), "y")


@jax.jit
def program(a, b):
    return [function(a + number, b) for number, function in enumerate(programs)]


inputs = (jnp.ones((16, 16)), jnp.ones((16, 16)))
