import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

train_mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
eval_mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("data",))


@jax.jit
def metrics(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)


def evaluate(w, batches):
    w = jax.device_put(w, NamedSharding(eval_mesh, P()))
    return [metrics(w, jax.device_put(b, NamedSharding(eval_mesh, P("data")))) for b in batches]


with jax.set_mesh(train_mesh):
    w = jax.device_put(jnp.ones((16, 4)), NamedSharding(train_mesh, P()))
    x = jax.device_put(jnp.ones((32, 16)), NamedSharding(train_mesh, P("data")))
    print("train", metrics(w, x))
    print("eval", evaluate(w, [np.ones((12, 16), np.float32)]))
