"""JAX's tests of Pallas kernels for TPUs, interpreted: the gather by XLA that the kernel's result is compared with."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.sharding.Mesh(jax.devices(), ("x",))
gather = jax.jit(jax.shard_map(lambda x: jax.lax.all_gather(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x")))


def gather_inputs():
    rows = jnp.ones((8 * len(jax.devices()), 128))
    return (jax.device_put(rows, NamedSharding(mesh, P("x", None))),)
