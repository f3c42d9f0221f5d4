# thread: LargeWorldModel/LWM#39
# asks: A batch of one at inference
# truth: nothing to split: shard the sequence
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("dp", "tp"), axis_types=(AxisType.Auto,) * 2)
w1 = jax.device_put(jnp.full((16, 64), 0.02), NamedSharding(mesh, P(None, "tp")))
w2 = jax.device_put(jnp.full((64, 16), 0.02), NamedSharding(mesh, P("tp", None)))


@jax.jit
def block(w1, w2, x):
    x = jax.nn.relu(x @ w1)
    return x @ w2


def generate(prompt):
    x = jax.device_put(prompt, NamedSharding(mesh, P("dp", None, None)))
    return block(w1, w2, x)


print(generate(jnp.ones((1, 128, 16))).shape)
