"""A backward rule inside of a shard_map whose gradient is each device's part of the sum."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "vocab"), axis_types=(AxisType.Auto,) * 2)


@jax.custom_vjp
def head(x, w):
    """The columns of the logits that a device has."""
    return x @ w


def forward(x, w):
    """The same, and what the backward rule needs."""
    return x @ w, (x, w)


def backward(kept, g):
    """Gradients of both arguments."""
    x, w = kept
    dx = g @ w.T
    return dx, lax.psum(x.T @ g, "data")


head.defvjp(forward, backward)


def loss(x, w):
    """The mean of the sums of squares."""
    return lax.pmean(lax.psum(jnp.sum(head(x, w) ** 2, -1).mean(), "vocab"), "data")


mapped = jax.shard_map(loss, mesh=mesh, in_specs=(P("data"), P(None, "vocab")), out_specs=P())
step = jax.jit(jax.grad(mapped, argnums=(0, 1)))
print([float(jnp.sum(each)) for each in step(jnp.ones((8, 16)), jnp.ones((16, 32)))])
