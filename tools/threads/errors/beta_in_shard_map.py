# thread: jax-ml/jax#31080
# asks: A sampler of JAX loops with a varying argument in shard_map
# truth: the loop is JAX's own: cast its other arguments, or check_vma=False
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("dp",), axis_types=(AxisType.Auto,))


def sums(xs):
    def body(state):
        total, i = state
        return total + xs[i].sum(), i + 1

    total, _ = jax.lax.while_loop(lambda state: state[1] < xs.shape[0], body, (0.0, 0))
    return total[None]


f = jax.jit(jax.shard_map(sums, mesh=mesh, in_specs=P("dp"), out_specs=P("dp")))
print(f(jnp.arange(64.0).reshape(16, 4)))
