# thread: jax-ml/jax#27808
# asks: Results do not divide by their out_shardings
# truth: pad the vocabulary, or keep that dimension whole
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
x = jax.device_put(jnp.ones((8, 32)), NamedSharding(mesh, P("data")))


def init_head(key):
    return {"kernel": jax.random.normal(key, (32, 50)) * 0.02, "bias": jnp.zeros((50,))}


shardings = {"kernel": NamedSharding(mesh, P(None, "model")), "bias": NamedSharding(mesh, P("model"))}
params = jax.jit(init_head, out_shardings=shardings)(jax.random.key(0))


@jax.jit
def forward(params, x):
    return x @ params["kernel"] + params["bias"]


print(forward(params, x).mean())
