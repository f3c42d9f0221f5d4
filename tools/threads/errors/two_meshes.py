# thread: marin-community/marin#1727
# asks: Arguments on two meshes
# truth: put both on one mesh
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

train_mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
eval_mesh = Mesh(np.array(jax.devices()[:4]).reshape(4), ("data",))
w = jax.device_put(jnp.ones((16, 8)), NamedSharding(train_mesh, P(None, "model")))


@jax.jit
def evaluate(w, x):
    return jnp.mean(x @ w)


def run_eval(w):
    x = jax.device_put(jnp.ones((8, 16)), NamedSharding(eval_mesh, P("data")))
    return evaluate(w, x)


print(run_eval(w))
