"""Gathers that the partitioner makes, and of whose results devices use one block each, or more than that."""

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


@programs.found_by("SS02", tpu="", gpu="")
def joined(a, ids):
    """The compilers of TPUs and GPUs see that nothing has to be gathered."""
    whole = along(jnp.concatenate([along(a, "x"), along(a * 2, "x")], 1))
    return along(jnp.concatenate([whole, whole], 1), "x")


@programs.found_by("SS02")
def looked_up(a, ids):
    """Rows are gathered, and of each one's columns every device keeps its own."""
    return along(along(jnp.sin(along(a, "x")))[ids] * 2, None, "x")


@programs.found_by("SS02")
def taken_apart(a, ids):
    whole = along(jnp.sin(along(a, "x")))
    return along((whole.reshape(4, 4, 16) * 2).reshape(16, 16), "x")


@programs.found_by("SS02")
def one_of_two_axes(a, ids):
    whole = along(jnp.cos(along(a, ("x", "y"))))
    return along(jnp.concatenate([whole, whole], 1), "x")


@programs.found_by("SS02")
def in_a_loop(a, ids):
    def body(carry, _):
        whole = along(jnp.tanh(carry))
        return along((whole.reshape(4, 4, 16) * 2).reshape(16, 16), "x"), None

    return lax.scan(body, along(a, "x"), None, 3)[0]


@programs.found_by()
def used_whole(a, ids):
    return along(jnp.concatenate([along(a, "x"), a], 1)) + 1


@programs.found_by()
def used_both_ways(a, ids):
    whole = along(jnp.sin(along(a, "x")))
    return along(whole * 2, "x") + whole[3, 5]


@programs.found_by()
def rows_anywhere(a, ids):
    """Every device looks up its own ids, in all rows."""
    return along(along(jnp.sin(along(a, "x")))[along(jnp.arange(8) * 2, "x")] * 2, "x")


@programs.found_by()
def over_another_axis(a, ids):
    return along(jnp.concatenate([along(along(a, "x")), a], 1) * 2, "y")


@programs.found_by("SS02")
def different_blocks(a, ids):
    whole = along(jnp.sin(along(a, "x")))
    return along(jnp.cos(whole), "x") @ along(jnp.exp(whole), None, "x")


@programs.found_by("SS02")
def both_axes_and_both_again(a, ids):
    return along(jnp.sin(along(along(a, ("x", "y")) * 3)), ("x", "y"))


@programs.found_by("SS02")
def both_axes_and_the_major_one_again(a, ids):
    return along(jnp.sin(along(along(a, ("x", "y")) * 3)), "x")


@programs.found_by()
def gathered_over_the_minor_one(a, ids):
    return along(jnp.sin(along(along(a, ("x", "y")) * 3, "x")), "x")


@programs.found_by("SS02")
def in_two_steps(a, ids):
    """Gathered over y, then over x."""
    return along(jnp.sin(along(along(a, "x", "y") * 3)), "x", "y")


@programs.found_by("SS02")
def over_parts_of_an_axis(a, ids):
    """A reshape that hands on x in two parts, which a constraint gathers and the next one wants again."""
    parts = along(a * 3, "x").reshape(2, 8, 16)
    return along(jnp.cos(along(parts)).reshape(16, 16), "x")


@jax.jit
def program(a, ids):
    return [function(a + number, ids) for number, function in enumerate(programs)]


inputs = (jnp.ones((16, 16)), jnp.arange(8))
