"""The programs of the notes on block matrices: four devices, every reshard, products with an `out_sharding`."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding, P
from jax.sharding import AxisType, reshard

explicit = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
auto = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
# Devices in another order, as the notes' machine has them.
flat = jax.sharding.Mesh(np.array(jax.devices()[:4])[[0, 2, 1, 3]], ("xy",))


def matrix(rows, columns, *spec, mesh=explicit):
    values = np.arange(rows * columns).reshape(rows, columns) % 7
    return jax.device_put(jnp.asarray(values, jnp.bfloat16), NamedSharding(mesh, P(*spec)))


def reshards(rows, columns, both, none):
    def to(a, *spec):
        return reshard(a, NamedSharding(explicit, P(*spec)))

    return {
        "gather columns": to(both, "x"),
        "gather all": to(both),
        "rows to columns": to(rows, None, "x"),
        "columns to rows": to(columns, "x"),
        "compound": to(both, ("x", "y")),
        "cut": to(none, "x", "y"),
        "swapped": to(both, "y", "x"),
    }


reshards_inputs = tuple(matrix(64, 256, *spec) for spec in (("x",), (None, "x"), ("x", "y"), ()))


def products(c, a, b):
    gram = jnp.dot(c, c.mT, out_sharding=NamedSharding(explicit, P()))
    return gram, jnp.dot(a, b, out_sharding=NamedSharding(explicit, P("x", "y")))


products_inputs = (matrix(64, 256, None, "x"), matrix(64, 256, "x", "y"), matrix(256, 128, "y"))

contracted = jax.jit(lambda a: (a.sum(axis=0), a.sum(axis=0)), out_shardings=(None, NamedSharding(auto, P(None))))
contracted_inputs = (matrix(64, 256, "x", "y", mesh=auto),)

flattened = jax.jit(lambda a: jnp.sin(a) + 1)
flattened_inputs = (matrix(64, 256, "xy", None, mesh=flat),)
