import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

RULES = {"batch": "data", "embed": "model", "mlp": "model"}
AXES = {"wi": ("embed", "mlp"), "wo": ("mlp", None)}
MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


def sharding(*names):
    return NamedSharding(MESH, P(*(RULES.get(name) for name in names)))


params = {"wi": jnp.ones((8, 16)), "wo": jnp.ones((16, 8))}
params = {name: jax.device_put(value, sharding(*AXES[name])) for name, value in params.items()}
x = jax.device_put(jnp.ones((8, 8)), sharding("batch", None))
print(jax.jit(lambda p, x: jnp.tanh(x @ p["wi"]) @ p["wo"])(params, x).sum())
