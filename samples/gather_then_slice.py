"""Faulty: rows are gathered everywhere, and each device keeps its own again.

The constraint in between asks for whole copies that nothing needs: the scaling before it and the sine after it work row
by row. The all-gather it causes moves everything to everyone. `repaired` constrains to the sharding that is wanted.
"""

import jax
import jax.numpy as jnp
from jax import NamedSharding, P, ShapeDtypeStruct, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
by_rows, replicated = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())


@jax.jit
def faulty(x):
    """Rows, then all of it everywhere, then rows."""
    whole = lax.with_sharding_constraint(2 * x, replicated)
    return lax.with_sharding_constraint(jnp.sin(whole), by_rows)


@jax.jit
def repaired(x):
    """Rows all the way."""
    rows = lax.with_sharding_constraint(2 * x, by_rows)
    return lax.with_sharding_constraint(jnp.sin(rows), by_rows)


faulty_inputs = repaired_inputs = (ShapeDtypeStruct((64, 16), jnp.float32, sharding=by_rows),)
