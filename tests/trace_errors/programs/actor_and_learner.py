"""Two halves of the devices, and actions of the one that the other is given."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

actors = Mesh(np.array(jax.devices()[:4]), ("env",))
learners = Mesh(np.array(jax.devices()[4:]), ("batch",))


@jax.jit
def update(params, observed, actions):
    """A step towards the actions."""
    return jnp.mean((observed @ params["w"] + params["b"] - actions) ** 2)


params = jax.device_put({"w": jnp.eye(8), "b": jnp.ones(8)}, NamedSharding(learners, P()))
observed = jax.device_put(jnp.ones((16, 8)), NamedSharding(actors, P("env")))
actions = jnp.tanh(observed)
print(update(params, jax.device_put(observed, NamedSharding(learners, P("batch"))), actions))
