"""Faulty: seventeen rows are to be sharded eight ways, and silently are not.

A constraint on an array inside `jit` may name an axis that does not divide the dimension. The result then comes back
whole on every device. `repaired` pads to the next multiple of eight, works on the padded rows, and leaves it to the
caller to ignore the rest.
"""

import jax
import jax.numpy as jnp
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

DEVICES, ROWS = 8, 17
mesh = jax.make_mesh((DEVICES,), ("x",), axis_types=(AxisType.Auto,))
by_rows = NamedSharding(mesh, P("x"))


@jax.jit
def faulty(x):
    """Asked for `P('x')`, got `P()`."""
    return lax.with_sharding_constraint(2 * x, by_rows)


@jax.jit
def repaired(x):
    """Three rows a device, the last seven of them zeros."""
    padded = jnp.pad(x, ((0, -ROWS % DEVICES), (0, 0)))
    return lax.with_sharding_constraint(2 * padded, by_rows)


faulty_inputs = repaired_inputs = (jnp.arange(ROWS * 4.0).reshape(ROWS, 4),)

if __name__ == "__main__":
    print(faulty(*faulty_inputs).sharding.spec, repaired(*repaired_inputs).sharding.spec)
