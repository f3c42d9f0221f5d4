# thread: google/flax#1702
# asks: Logical axes that map to one mesh axis
# truth: one of the dimensions stays whole
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("fsdp", "tp"), axis_types=(AxisType.Auto,) * 2)
rules = {"batch": "fsdp", "embed": "fsdp", "mlp": "tp", "heads": "tp"}


def sharding_of(*names):
    return NamedSharding(mesh, P(*(rules.get(name) for name in names)))


w = jax.device_put(jnp.ones((32, 64)) * 0.01, sharding_of("embed", "mlp"))


@jax.jit
def mlp(w, x):
    h = jnp.tanh(x @ w)
    return jax.lax.with_sharding_constraint(h @ w.T, sharding_of("batch", "embed"))


x = jax.device_put(jnp.ones((16, 32)), NamedSharding(mesh, P("fsdp")))
print(mlp(w, x).sum())
