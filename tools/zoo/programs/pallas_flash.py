"""JAX's own flash attention for TPUs, heads over one axis and batch over the other."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
spec = P("data", "model")
attend = jax.shard_map(
    lambda q, k, v: flash_attention(q, k, v, causal=True), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False
)


@jax.jit
def attention(x, wqkv, wo):
    q, k, v = jnp.einsum("bte,eshd->sbhtd", x, wqkv)
    return jnp.einsum("bhtd,hde->bte", attend(q, k, v), wo)


def placed(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))


attention_inputs = (
    placed((4, 512, 256), "data"),
    placed((256, 3, 4, 128), None, None, "model"),
    placed((4, 128, 256), "model"),
)
