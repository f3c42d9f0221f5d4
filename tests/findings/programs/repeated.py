"""One product in each function, which some devices compute from the same values: the values say which ones."""

from functools import partial

import jax
import numpy as np
from jax import NamedSharding, lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
functions = []


def alone(rows, weights=()):
    """Takes a body in, whose results are each device's own: no device knows what another one gives."""

    def taken_in(body):
        specs = (P(*rows), P(*weights))
        mapped = jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(("x", "y")), check_vma=False)
        functions.append((body.__name__, mapped))
        return mapped

    return taken_in


@alone(("x",))
def by_rows(a, w):
    return a @ w


@alone(())
def alike(a, w):
    return a @ w


@alone((("x", "y"),))
def its_own(a, w):
    return a @ w


@alone((), (None, "y"))
def by_columns(a, w):
    return a[:4] @ w


@alone((("x", "y"),))
def gathered(a, w):
    return lax.all_gather(a, "y", tiled=True) @ w


@alone((("x", "y"),))
def gathered_in_halves(a, w):
    return lax.all_gather(a, "x", tiled=True, axis_index_groups=[[0, 1], [2, 3]]) @ w


@alone((("x", "y"),))
def summed(a, w):
    return lax.psum(a, "x") @ w


@alone(("x",))
def scattered(a, w):
    return lax.psum_scatter(a, "y", tiled=True) @ w


@alone(("x",))
def exchanged(a, w):
    return lax.all_to_all(a, "y", 1, 0, tiled=True) @ w[:16]


@alone(("x",))
def shifted(a, w):
    return lax.ppermute(a, "x", [(i, (i + 1) % 4) for i in range(4)]) @ w


@alone(("x",))
def shifted_by_some(a, w):
    return lax.ppermute(a, "x", [(0, 1), (2, 3)]) @ w


@alone(())
def its_place(a, w):
    return lax.dynamic_slice_in_dim(a, 4 * lax.axis_index("x"), 4) @ w


@alone(())
def more_different_each_time(a, w):
    return lax.fori_loop(0, 3, lambda i, c: c @ w + lax.axis_index("y"), a)


@alone(())
def as_long_as_it_likes(a, w):
    return lax.fori_loop(0, lax.axis_index("y") + 1, lambda i, c: c @ w + 1, a)


@alone(("x",))
def the_same_each_time(a, w):
    return lax.scan(lambda c, _: (c @ w, None), a, None, 3)[0]


@alone(("x",))
def with_some(a, w):
    return lax.cond(lax.axis_index("y") == 0, lambda: a @ w, lambda: a)


@alone(("x",))
def with_all(a, w):
    return lax.cond(a.size > w[0, 0], lambda: a @ w, lambda: a)


def by_itself(a, w):
    rows = lax.with_sharding_constraint(a, NamedSharding(mesh, P("x")))
    return lax.with_sharding_constraint(rows @ w, NamedSharding(mesh, P("x")))


functions.append(("by_itself", by_itself))


def program(a, w):
    return [function(a, w) for _, function in functions]


random = np.random.default_rng(0)
place = partial(jax.device_put, device=NamedSharding(mesh, P()))
inputs = tuple(place(random.integers(-9, 9, size=(32, 32)).astype("float32")) for _ in range(2))
for name, function in functions:
    shards = jax.jit(function)(*inputs).addressable_shards
    held = [np.asarray(each.data).tobytes() for each in sorted(shards, key=lambda each: each.device.id)]
    print(name, *map(held.index, held))
