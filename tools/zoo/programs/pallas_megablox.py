"""JAX's grouped matmul for TPUs (megablox), the experts of each device in a shard_map."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas.ops.tpu.megablox import gmm
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("expert",), axis_types=(AxisType.Auto,))


def local_experts(x, w, sizes):
    y = gmm(x, w, sizes, preferred_element_type=jnp.float32)
    return lax.psum(y, "expert")


experts = jax.jit(
    jax.shard_map(local_experts, mesh=mesh, in_specs=(P(), P("expert"), P("expert")), out_specs=P(), check_vma=False)
)


def placed(shape, dtype, *spec):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


experts_inputs = (
    placed((512, 256), jnp.bfloat16),
    placed((16, 256, 256), jnp.bfloat16, "expert"),
    placed((16,), jnp.int32, "expert"),
)
