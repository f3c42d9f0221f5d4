# thread: jax-ml/jax#20968
# asks: A vmapped while loop is much slower with a sharded batch than with pmap
# truth: each iteration asks all devices whether they are done: shard_map
# finds: SS26
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


@jax.jit
@jax.vmap
def solve(x):
    return jax.lax.while_loop(lambda state: state[0] > 1e-3, lambda state: (state[0] * 0.97, state[1] + 1), (x, 0))


mesh = Mesh(np.array(jax.devices()), ("batch",))
x = jax.device_put(jnp.linspace(1.0, 1000.0, 1024), NamedSharding(mesh, P("batch")))
print(solve(x)[1].max())
