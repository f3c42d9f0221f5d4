# thread: vllm-project/tpu-inference#139
# asks: A leaf of the parameters does not divide
# truth: shard the leaves that can be, keep the others whole
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("fsdp",), axis_types=(AxisType.Auto,))


def init(key):
    k1, k2 = jax.random.split(key)
    return {
        "embed": jax.random.normal(k1, (64, 32)) * 0.1,
        "head": {"kernel": jax.random.normal(k2, (32, 10)) * 0.1, "bias": jnp.zeros((10,))},
    }


params = init(jax.random.key(0))
params = jax.tree.map(lambda p: jax.device_put(p, NamedSharding(mesh, P("fsdp"))), params)
tokens = jax.device_put(jnp.arange(16) % 64, NamedSharding(mesh, P("fsdp")))


@jax.jit
def logits(params, tokens):
    h = params["embed"][tokens]
    return h @ params["head"]["kernel"] + params["head"]["bias"]


print(logits(params, tokens).sum())
