# thread: jax-ml/jax#20381
# asks: Where does the all-gather in a shuffle of each row come from?
# truth: there is none with the partitioner of today
# finds: nothing
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("dp",))
whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("dp", None, None))


def shuffled(key, inputs):
    keys = jax.random.split(key, inputs.shape[0])
    return jax.vmap(jax.random.permutation)(keys, inputs)


f = jax.jit(shuffled, in_shardings=(whole, rows), out_shardings=rows)
print(f(jax.random.PRNGKey(0), jnp.zeros((24, 256, 16))).shape)
