import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


def named(spec):
    return NamedSharding(mesh, spec)


params = {"w1": jnp.ones((16, 32)) * 0.1, "w2": jnp.ones((32, 1)) * 0.1}
param_sharding = {"w1": named(P(None, "model")), "w2": named(P("model", None))}
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
opt_state = optimizer.init(params)
# mu and nu like the parameters
opt_sharding = (None, (param_sharding, param_sharding))


def step(params, opt_state, batch):
    def loss(p):
        return jnp.mean((jax.nn.relu(batch["x"] @ p["w1"]) @ p["w2"] - batch["y"]) ** 2)

    value, g = jax.value_and_grad(loss)(params)
    updates, opt_state = optimizer.update(g, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, value


jstep = jax.jit(
    step,
    in_shardings=(param_sharding, opt_sharding, named(P("data"))),
    out_shardings=(param_sharding, opt_sharding, None),
)
batch = {"x": np.ones((8, 16), np.float32), "y": np.zeros((8, 1), np.float32)}
for i in range(3):
    params, opt_state, value = jstep(params, opt_state, batch)
    print(i, value)
