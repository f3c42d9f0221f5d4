"""Two logical axes of a table that stand for one mesh axis, as several constraints name them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))
RULES = (("batch", "data"), ("length", None), ("heads", "model"), ("head_dim", "model"))


def constrain(x, *names):
    """A value by its logical axes."""
    rules = dict(RULES)
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*(rules[name] for name in names))))


@jax.jit
def attention(wq, wk, x):
    """The weights of each head."""
    q = constrain(jnp.einsum("btd,dhk->bthk", x, wq), "batch", "length", "heads", "head_dim")
    k = constrain(jnp.einsum("btd,dhk->bthk", x, wk), "batch", "length", "heads", "head_dim")
    return jax.nn.softmax(jnp.einsum("bqhk,bshk->bhqs", q, k))


w = np.linspace(-1, 1, 16 * 4 * 8, dtype=np.float32).reshape(16, 4, 8)
x = jax.device_put(jnp.linspace(0, 1, 512).reshape(4, 8, 16), NamedSharding(mesh, P("data")))
print((attention(w, -w, x) ** 2).sum())
