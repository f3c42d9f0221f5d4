"""Faulty: from columns to rows by way of a whole copy on every device.

From columns sharded over `model` to rows sharded over `data`: two axes change at once, and a partitioner that has no
path for that gathers everything everywhere, then slices (XLA's "involuntary full rematerialization"). `repaired` takes
two steps: shard the rows first, which moves nothing, then gather the columns of these rows only.
"""

import jax
import jax.numpy as jnp
from jax import NamedSharding, P, ShapeDtypeStruct, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
by_columns, by_rows = NamedSharding(mesh, P(None, "model")), NamedSharding(mesh, P("data", None))
by_blocks = NamedSharding(mesh, P("data", "model"))


@jax.jit
def faulty(x):
    """An all-gather of all rows."""
    return 2 * lax.with_sharding_constraint(x, by_rows)


@jax.jit
def repaired(x):
    """An all-gather of a quarter of the rows."""
    return 2 * lax.with_sharding_constraint(lax.with_sharding_constraint(x, by_blocks), by_rows)


faulty_inputs = repaired_inputs = (ShapeDtypeStruct((32, 64), jnp.float32, sharding=by_columns),)
