# thread: google-deepmind/optax#548
# asks: Is the optimizer's state initialized in shards, as the parameters are?
# truth: zeros_like depends on no value under jit, so the moments are whole: out_shardings
# finds: SS35
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("fsdp",), axis_types=(AxisType.Auto,))


@jax.jit
def init(key):
    params = {
        "w": jax.lax.with_sharding_constraint(jax.random.normal(key, (1024, 512)), NamedSharding(mesh, P("fsdp")))
    }
    return params, jax.tree.map(jnp.zeros_like, params)


params, moments = init(jax.random.key(0))
print(params["w"].sharding, moments["w"].sharding)
