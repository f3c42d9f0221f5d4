"""Programs with what is rare: each is there for what its report has that others have not."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType, NamedSharding

auto = jax.make_mesh((2, 2, 2), ("pipe", "seq", "model"), axis_types=(AxisType.Auto,) * 3)
explicit = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def sharded(*axes):
    return NamedSharding(auto, P(*axes))


@jax.jit
@partial(
    jax.shard_map,
    mesh=auto,
    in_specs=(P("pipe", "seq"), P(("seq", "model"))),
    out_specs=(P("pipe", "seq"), P()),
    check_vma=False,
)
def exchange(x, y):
    """Collectives of all kinds, in a branch and in loops in each other, one of them on parts of an axis."""
    x = lax.all_to_all(x, "seq", 1, 0, tiled=True)
    x = lax.cond(x.sum() > 0, lambda v: lax.pmax(v, "model"), lambda v: v * 2, x)

    def outer(i, held):
        held = lax.ppermute(held, "pipe", [(0, 1)])
        return lax.fori_loop(0, 4, lambda j, h: h + lax.pmean(h, ("seq",)), held)

    x = lax.fori_loop(0, 3, outer, x)
    whole = lax.all_gather(y, ("seq", "model"), tiled=True)
    lowest = lax.psum(lax.pmin(whole, "pipe"), ("pipe", "seq", "model"))
    return lax.all_to_all(x, "seq", 0, 1, tiled=True), lowest


exchange_inputs = (jnp.arange(32.0).reshape(4, 8), jnp.arange(8.0))


@jax.jit
def typed(a, b):
    """Shardings in types: a contraction that asks for its result's, a conversion, a reshard."""
    c = jnp.einsum("ij,jk->ik", a, b, out_sharding=NamedSharding(explicit, P("x", None)))
    c = jax.sharding.reshard(c, NamedSharding(explicit, P(None, "x")))
    jax.debug.print("largest {}", c.max())
    return (c.astype(jnp.bfloat16) * 2).sum(1)


typed_inputs = (
    jax.device_put(jnp.ones((8, 4)), NamedSharding(explicit, P("x", "y"))),
    jax.device_put(jnp.ones((4, 8)), NamedSharding(explicit, P("y", None))),
)


def gather_late(weights, tokens):
    """Rows that tokens choose from a table that is sharded, a sort over a sharded dimension, a cumulative sum."""
    rows = lax.with_sharding_constraint(weights, sharded("model", None))[tokens]
    ordered = jnp.sort(lax.with_sharding_constraint(rows, sharded("pipe", "seq")), axis=1)
    padded = jnp.pad(jnp.cumsum(ordered, 0), ((1, 1), (0, 0)))
    flat = lax.with_sharding_constraint(padded.reshape(-1)[:16], sharded(("pipe", "model")))
    return flat, jnp.linalg.norm(flat), weights[:, ::-1]


embedded = jax.jit(gather_late, in_shardings=(sharded("model"), sharded("pipe")))
embedded_inputs = (jnp.arange(32.0).reshape(8, 4), jnp.array([1, 5, 2, 7]))


@jax.jit
def gathered_twice(x, w):
    """The same value gathered twice, kept replicated at last, and a suppressed finding."""
    x = lax.with_sharding_constraint(x, sharded("pipe", "model"))
    a = lax.with_sharding_constraint(x, sharded(None, None)) @ w
    b = lax.with_sharding_constraint(x * 2, sharded(None, None))  # shardscope: ignore[SS23]
    return lax.with_sharding_constraint(a, sharded("seq")), b


gathered_twice_inputs = (jnp.ones((8, 8)), jnp.ones((8, 4)))
