# thread: -
# asks: A batch over two mesh axes does not divide
# truth: shard it over one of them
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("dp", "fsdp"), axis_types=(AxisType.Auto,) * 2)
batch_sharding = NamedSharding(mesh, P(("dp", "fsdp")))
x = jnp.linspace(0.0, 1.0, 4 * 24).reshape(4, 24)
w = jax.device_put(jnp.ones((24, 8)), NamedSharding(mesh, P("fsdp")))


def step(w, x):
    return jnp.mean((x @ w) ** 2)


step = jax.jit(step, in_shardings=(NamedSharding(mesh, P("fsdp")), batch_sharding))
print(step(w, x))
