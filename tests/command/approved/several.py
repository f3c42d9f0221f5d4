"""Run as several processes, which compile different programs: one constant is their rank,
and one program only the first of them has."""

import jax
import jax.numpy as jnp
from jax import P
from jax.sharding import AxisType, NamedSharding

mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
rank = jax.process_index()


@jax.jit
def same(x):
    return x.sum()


@jax.jit
def scaled(x):
    return (x * (rank + 1)).sum()


@jax.jit
def first(x):
    return x * 2


x = jax.make_array_from_callback((8,), NamedSharding(mesh, P("data")), lambda index: jnp.ones(8)[index])
for _ in range(3):
    same(x).block_until_ready()
if rank == 0:
    first(jnp.ones(3))
scaled(x)
