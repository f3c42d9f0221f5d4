"""Programs whose reports are kept, as small as may be: each for what its report has that no other has."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType, NamedSharding

mesh = jax.make_mesh((2, 2), ("data", "tp"), axis_types=(AxisType.Auto,) * 2)
IN = (P(None, "tp"), P("tp"), P("data"))
OUT = (P("tp"), P("data"), P())


def on(*axes):
    return NamedSharding(mesh, P(*axes))


def loss(weights, x):
    def layer(h, w):
        return lax.with_sharding_constraint(jnp.tanh(h @ w), on("data", None)), None

    return (lax.scan(layer, x, weights)[0] ** 2).mean()


@partial(jax.jit, in_shardings=(on(None, "data", "tp"), on("data", None)), donate_argnums=0)
def train(weights, x):
    """Layers in a loop, and their gradients."""
    return weights - 0.1 * jax.grad(loss)(weights, x)


train_inputs = (jnp.full((3, 4, 4), 0.1), jnp.ones((4, 4)))


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=IN, out_specs=OUT, check_vma=False)
def manual(a, b, c):
    """A sum of which each device keeps a slice, a ring in a loop, and a result that is not as it is declared."""
    product = lax.psum(a @ b, "tp")
    rows = product.shape[0] // 2
    mine = lax.dynamic_slice_in_dim(product, lax.axis_index("tp") * rows, rows)

    def turn(i, held):
        return lax.ppermute(held, "data", [(0, 1), (1, 0)]) * 1.5

    turned = lax.fori_loop(0, 3, turn, c)
    return mine, turned, c.sum() / (c.sum() - 1)


manual_inputs = (jnp.arange(8.0).reshape(4, 2), jnp.arange(4.0).reshape(2, 2), jnp.arange(2.0))


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=IN, out_specs=OUT)
def revised(a, b, c):
    """The same with its faults repaired: a reduce-scatter, a longer loop, and a sum over its axis."""
    mine = lax.psum_scatter(a @ b, "tp", tiled=True)
    turned = lax.fori_loop(0, 5, lambda i, held: lax.ppermute(held, "data", [(0, 1), (1, 0)]) * 1.5, c)
    return mine, turned, lax.psum(c.sum(), "data")


revised_inputs = manual_inputs


@jax.jit
def counted(x, n):
    """A loop whose trips are not known, around a collective that XLA inserts."""
    x = lax.with_sharding_constraint(x, on("data", "tp"))
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.sin(s[1] @ s[1])), (0, x))[1]


counted_inputs = (jnp.ones((4, 4)), 3)


@jax.jit
def broken(x, y):
    """It does not trace: three rows are not sharded over two devices."""
    product = jax.shard_map(lambda a, b: lax.psum(a * b, "data"), mesh=mesh, in_specs=P("data"), out_specs=P("tp"))
    return product(x, y)


broken_inputs = (jnp.ones((3, 4)), jnp.ones((3, 4)))
