import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"))
by_model = NamedSharding(mesh, P(None, "model"))
params = {"w": jnp.ones((16, 32)), "b": jnp.ones(32), "scale": jnp.ones(())}
on_devices = jax.tree.map(lambda leaf: jax.device_put(leaf, by_model), params)
print(jnp.sum(on_devices["w"] * on_devices["b"] * on_devices["scale"]))
