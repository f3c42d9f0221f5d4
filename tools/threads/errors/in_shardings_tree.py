# thread: jax-ml/jax#8996
# asks: in_shardings have another length than the arguments
# truth: None for the missing one
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("dp",), axis_types=(AxisType.Auto,))
replicated, sharded = NamedSharding(mesh, P()), NamedSharding(mesh, P("dp"))


def train_step(params, batch, lr):
    def loss_fn(p):
        return jnp.mean((batch["x"] @ p["w"] - batch["y"]) ** 2)

    grads = jax.grad(loss_fn)(params)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads)


step = jax.jit(train_step, in_shardings=(replicated, sharded), out_shardings=replicated)
params = {"w": jnp.zeros((4,))}
batch = {"x": jnp.ones((16, 4)), "y": jnp.ones((16,))}
print(step(params, batch, 0.1))
