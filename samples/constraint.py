"""A constraint that leaves a dimension open, beside one that closes it.

Both say that rows are sharded over `data`. `open_columns` says nothing of the columns, and they stay sharded over
`model` as the argument brought them. `closed_columns` says that no axis shards them, and an all-gather over `model`
sees to it.
"""

import jax
import jax.numpy as jnp
from jax import NamedSharding, P, ShapeDtypeStruct, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))


@jax.jit
def open_columns(x):
    """In Shardy's words, `[{"data"}, {?}]`."""
    return lax.with_sharding_constraint(2 * x, NamedSharding(mesh, P("data", P.UNCONSTRAINED)))


@jax.jit
def closed_columns(x):
    """In Shardy's words, `[{"data"}, {}]`."""
    return lax.with_sharding_constraint(2 * x, NamedSharding(mesh, P("data", None)))


open_columns_inputs = closed_columns_inputs = (
    ShapeDtypeStruct((32, 64), jnp.float32, sharding=NamedSharding(mesh, P("data", "model"))),
)
