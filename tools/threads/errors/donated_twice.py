# thread: jax-ml/jax#9635
# asks: One buffer is donated twice
# truth: copy it
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(8), ("dp",))
params = jax.device_put({"w": jnp.ones((8, 4))}, NamedSharding(mesh, P("dp")))
state = {"params": params, "ema": params}
x = jax.device_put(jnp.ones((16, 8)), NamedSharding(mesh, P("dp")))


def update(state, x):
    grads = jax.grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(state["params"])
    params = jax.tree.map(lambda p, g: p - 0.1 * g, state["params"], grads)
    ema = jax.tree.map(lambda e, p: 0.9 * e + 0.1 * p, state["ema"], params)
    return {"params": params, "ema": ema}


update = jax.jit(update, donate_argnums=0)
state = update(state, x)
print(state["ema"]["w"].sum())
