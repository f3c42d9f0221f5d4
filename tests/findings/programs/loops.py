"""Collectives in loops that could be outside, or fewer; sums that could be one; and what only looks like it."""

import jax
import jax.numpy as jnp
from jax import NamedSharding, lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from registry import Programs

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
programs = Programs()
ring = [(source, (source + 1) % 4) for source in range(4)]


def mapped(function):
    return jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)


def along(value, *axes):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*axes)))


@programs.found_by("SS25")
def logged(a):
    return lax.scan(lambda c, _: (jnp.tanh(c), jnp.mean(c)), along(a, "x"), None, 3)


@programs.found_by("SS25")
@mapped
def logged_in_a_shard_map(a):
    c, norms = lax.scan(lambda c, _: (jnp.tanh(c), lax.psum(c[0] * 2, "x") / 4), a, None, 3)
    return c + norms.sum()


@programs.found_by()
@mapped
def logged_beside_a_sum_that_is_used(a):
    """Compilers combine the two: the logged one is sent with the other, which the next iteration needs."""

    def body(w, _):
        gradient, loss = lax.psum(a.T @ (a @ w), "x"), lax.psum(jnp.sum((a @ w) ** 2), "x")
        return w - 0.01 * gradient, loss

    w, losses = lax.scan(body, jnp.ones(16), None, 3)
    return a * w + losses.sum()


@programs.found_by()
def used_in_the_loop(a):
    def body(c, _):
        mean = jnp.mean(c)
        return jnp.tanh(c) - mean, mean

    return lax.scan(body, along(a, "x"), None, 3)


@programs.found_by()
def read_in_the_loop(a):
    def body(i, carry):
        c, means = carry
        return jnp.tanh(c) + means[0], means.at[i].set(jnp.mean(c))

    return lax.fori_loop(0, 3, body, (along(a, "x"), jnp.zeros(3)))


@programs.found_by("SS26")
def until_all_are_done(a):
    return jax.vmap(lambda row: lax.while_loop(lambda r: r.sum() < 9, lambda r: r * 2 + 1, row))(along(a, "x"))


@programs.found_by()
def until_any_is_done(a):
    """Its condition is about all of them: that is what it computes."""
    return lax.while_loop(lambda r: jnp.all(r < 9), lambda r: r * 2 + 1, along(a, "x"))


@programs.found_by()
@mapped
def until_its_own_are_done(a):
    return jax.vmap(lambda row: lax.while_loop(lambda r: r.sum() < 9, lambda r: r * 2 + 1, row))(a)


@programs.found_by("SS27")
@mapped
def once_too_often(a):
    def body(i, carry):
        total, part = carry
        return total + part * i, lax.ppermute(part, "x", ring)

    return lax.fori_loop(0, 4, body, (a, a))[0]


@programs.found_by("SS27", gpu="")  # sent together with what is used
@mapped
def once_too_often_before_more(a):
    """Elementwise work takes the loop's elements: XLA's text has `%while#0` there, and no get-tuple-element."""

    def body(i, carry):
        total, part, row = carry
        moved, row = (lax.ppermute(each, "x", ring) for each in (part, row))
        return total + part * i + row, moved, row

    total, _, row = lax.fori_loop(0, 4, body, (a, a, a[0]))
    return total / (1 + total + row)


@programs.found_by()
@mapped
def often_enough(a):
    def body(i, carry):
        total, part = carry
        return total + part * i, lax.ppermute(part, "x", ring)

    total, last = lax.fori_loop(0, 3, body, (a, a))
    return total + last * 3


@programs.found_by()
@mapped
def home_again(a):
    def body(i, carry):
        total, part = carry
        return total + part * i, lax.ppermute(part * 2, "x", ring)

    total, home = lax.fori_loop(0, 4, body, (a, a))
    return total - home


@programs.found_by()
@mapped
def sums_that_travel(a):
    return lax.fori_loop(0, 4, lambda i, total: lax.ppermute(total, "x", ring) + i * a, a)


@programs.found_by("SS07", "SS08", tpu="SS08")
@mapped
def gathered_in_each_iteration_of_the_recomputation(a):
    """`jax.checkpoint` puts a barrier around the operands: the one that changes does not change the others."""

    def loss(a):
        @jax.checkpoint
        def step(h, _):
            return jnp.tanh(h @ lax.all_gather(a, "x", tiled=True)), None

        return (lax.scan(step, a, None, 3)[0] ** 2).sum()

    return jax.grad(loss)(a)


@programs.found_by()
@mapped
def layers_gathered_in_the_recomputation(a):
    def loss(layers):
        @jax.checkpoint
        def step(h, w):
            return jnp.tanh(h @ lax.all_gather(w, "x", tiled=True)), None

        return (lax.scan(step, a, layers)[0] ** 2).sum()

    return jax.grad(loss)(jnp.stack([a, a * 2, a * 3])).sum(axis=0)


@programs.found_by()
@mapped
def states_gathered_in_the_recomputation(a):
    def loss(a):
        @jax.checkpoint
        def step(h, _):
            return jnp.tanh(a @ lax.all_gather(h, "x", tiled=True)), None

        return (lax.scan(step, a, None, 3)[0] ** 2).sum()

    return jax.grad(loss)(a)


@programs.found_by("SS28", tpu="", gpu="")  # these compilers add first
@mapped
def added(a):
    return lax.psum(a * 2, "x") + lax.psum(jnp.sin(a), "x")


@programs.found_by("SS28", gpu="")  # in one vector, cut inside the fusion that adds
@mapped
def scaled_and_added(a):
    return lax.psum(jnp.cos(a), "x") * 3 - lax.psum(jnp.exp(a), "x")


@programs.found_by("SS28", gpu="")  # one of the vector that others are in
@mapped
def over_one_and_the_other(a):
    b = a * (1 + lax.axis_index("y"))
    return lax.psum(lax.psum(b, "x").T, "y").T


@programs.found_by("SS06")  # what varies over y is returned as if it did not
@mapped
def used_between(a):
    b = lax.psum(a * (1 + lax.axis_index("y")), "x")
    return lax.psum(b, "y") + jnp.sin(b)


@programs.found_by()
@mapped
def not_linear(a):
    return lax.psum(jnp.tanh(lax.psum(a * (1 + lax.axis_index("y")), "x")), "y")


@programs.found_by("SS06")  # what varies over y is returned as if it did not
@mapped
def over_other_axes(a):
    b = a * (1 + lax.axis_index("y"))
    return lax.psum(jnp.log(b), "x") + lax.psum(jnp.sqrt(b), "y")


def placed(part, before, filling=0.0):
    return lax.pad(part[None], jnp.float32(filling), [(before, 1 - before, 0), (0, 0, 0), (0, 0, 0)])


@programs.found_by("SS07")
@mapped
def accumulated_in_two_parts(a):
    """As the gradients of two slices of one array are."""

    def body(total, row):
        first, second = (lax.psum(jnp.sin(a * row) * by, "x") for by in (2, 3))
        return total + placed(first, 0) + placed(second, 1), None

    return lax.scan(body, jnp.zeros((2, *a.shape)), a[0])[0].sum(0)


@programs.found_by()
@mapped
def accumulated_beside_others(a):
    """Outside of the loop, the sum would be beside the ones for all iterations."""

    def body(total, row):
        return total + placed(lax.psum(jnp.sin(a * row), "x"), 0, 1.0), None

    return lax.scan(body, jnp.zeros((2, *a.shape)), a[0])[0].sum(0)


@programs.found_by()
@mapped
def squares_accumulated(a):
    def body(total, row):
        return total + lax.psum(jnp.sin(a * row), "x") ** 2, None

    return lax.scan(body, jnp.zeros(a.shape), a[0])[0]


@programs.found_by()
@mapped
def accumulated_and_read(a):
    def body(total, row):
        part = lax.psum(jnp.sin(a * row), "x") + jnp.sin(total)
        return total + part, None

    return lax.scan(body, jnp.zeros(a.shape), a[0])[0]


@jax.jit
def program(a):
    # Each on numbers of its own, so that none is left out as another one's double.
    return [function(a + number) for number, function in enumerate(programs)]


inputs = (jnp.ones((16, 16)),)
