"""Functions with a shard_map over automatic axes that do not trace."""

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def by_lambda(a):
    first = jax.shard_map(lambda a: jnp.sin(a), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)
    return jax.shard_map(lambda a: a * 2, mesh=mesh, in_specs=P("x"), out_specs=P())(first)


def of_two(a):
    def body(a):
        return {"sum": jnp.sum(a), "blocks": a}

    whole = jax.shard_map(jnp.sin, mesh=mesh, in_specs=P(), out_specs=P())(a)
    return jax.shard_map(body, mesh=mesh, in_specs=P(("x", "y")), out_specs={"sum": P(), "blocks": P(("x", "y"))})(
        whole
    )


def summed_by_keyword(a):
    def body(a):
        return lax.psum(a, axis_name=("x", "y"))

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(a)


def scattered(a):
    def body(a):
        return lax.psum_scatter(a[:5], "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P("x"))(a)


def two_carries(a):
    def body(a):
        return lax.while_loop(lambda c: c[1] < 3, lambda c: [c[0] + a.sum(), c[1] + a[0].astype(int)], [0.0, 0])[0]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


def misnamed_in_a_helper(a):
    def helper(a):
        return lax.pmean(a, "z")

    return jax.shard_map(lambda a: helper(a) + 1, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


def switched(a):
    def constant(a):
        return jnp.ones(a.shape)

    def body(a):
        return lax.cond(a[0] > 0, jnp.sin, constant, a)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


by_lambda_inputs = of_two_inputs = summed_by_keyword_inputs = scattered_inputs = two_carries_inputs = (jnp.arange(8.0),)
misnamed_in_a_helper_inputs = switched_inputs = by_lambda_inputs
