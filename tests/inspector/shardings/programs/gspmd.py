"""A program that is partitioned without Shardy."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_use_shardy_partitioner", False)

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def on(*spec):
    return NamedSharding(mesh, P(*spec))


@jax.jit
def predict(x, w1, w2):
    h = jnp.tanh(x @ w1)
    h = jax.lax.with_sharding_constraint(h, on("data", "model"))
    return h @ w2, h.sum()


predict_inputs = (
    jax.ShapeDtypeStruct((16, 128), jnp.float32, sharding=on("data")),
    jax.ShapeDtypeStruct((128, 256), jnp.float32, sharding=on(None, "model")),
    jax.ShapeDtypeStruct((256, 10), jnp.float32),
)
