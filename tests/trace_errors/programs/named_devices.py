import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

devices = np.array(jax.devices())
rows = Mesh(devices, "rows")
mesh = Mesh(devices, ("data", "heads", "model"))
weights = jax.device_put(jnp.ones((16, 32)), NamedSharding(mesh, PartitionSpec("data", "model")))
print(jnp.sum(weights), rows.shape)
