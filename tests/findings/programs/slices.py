"""SS17 and SS18: a model axis across two slices, inside them, and no communication at all.

There every device computes all of it, which is SS29.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P

devices = np.array(jax.devices())


def inputs(*names):
    mesh = Mesh(devices.reshape(2, -1), names, axis_types=(AxisType.Auto,) * 2)

    def array(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec)))

    return array((65536, 1024), "data"), array((1024, 4096), None, "model"), array((4096, 1024), "model")


def activations(x, w1, w2):
    return jax.nn.relu(x @ w1) @ w2


across = inside = alone = activations


def across_inputs():
    return inputs("model", "data")


def inside_inputs():
    return inputs("data", "model")


def alone_inputs():
    return tuple(array.update(sharding=NamedSharding(array.sharding.mesh, P())) for array in inputs("data", "model"))
