# thread: google/flax#5124
# asks: A logical name stands for a mesh axis
# truth: the mesh's name
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


@jax.jit
def attention(q, k, v):
    scores = jnp.einsum("bthd,bshd->bhts", q, k)
    scores = jax.lax.with_sharding_constraint(scores, P("data", "heads", None, None))
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)


with mesh:
    q = jax.device_put(jnp.ones((4, 8, 2, 16)), NamedSharding(mesh, P("data", None, "model")))
    print(attention(q, q, q).sum())
