# thread: jax-ml/jax#28666
# asks: pmean under jit
# truth: leave it out: values are global
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(8), ("dp",))


@jax.jit
def train_step(w, x, y):
    loss, grads = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    grads = jax.lax.pmean(grads, axis_name="dp")
    loss = jax.lax.pmean(loss, axis_name="dp")
    return w - 0.1 * grads, loss


x = jax.device_put(jnp.arange(64.0).reshape(16, 4) / 64, NamedSharding(mesh, P("dp")))
y = jax.device_put(jnp.ones((16,)), NamedSharding(mesh, P("dp")))
w = jax.device_put(jnp.zeros((4,)), NamedSharding(mesh, P()))
print(train_step(w, x, y))
