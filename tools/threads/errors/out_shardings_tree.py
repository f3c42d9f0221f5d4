# thread: jax-ml/jax#8996
# asks: out_shardings have another length than the results
# truth: None for the missing one
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("dp",), axis_types=(AxisType.Auto,))
replicated, sharded = NamedSharding(mesh, P()), NamedSharding(mesh, P("dp"))


def step(w, x):
    loss, grad = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - 0.1 * grad, loss, {"norm": jnp.linalg.norm(grad)}


step = jax.jit(step, in_shardings=(replicated, sharded), out_shardings=(replicated, replicated))
w, loss, metrics = step(jnp.ones((8, 2)), jnp.ones((16, 8)))
print(loss, metrics)
