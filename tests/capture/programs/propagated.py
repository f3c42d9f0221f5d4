"""Programs through which shardings spread in all the ways there are."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))


def on(*entries):
    return NamedSharding(mesh, P(*entries))


def like(*shape, spec=None):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=None if spec is None else on(*spec))


def sharded(a, b):
    return a @ b


sharded_inputs = (like(8, 16, spec=("x", None)), like(16, 4, spec=(None, "y")))

layer = jax.shard_map(
    lambda h, w: jnp.tanh(lax.psum(h @ w, "y")), mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None)
)


def mapped(x, w):
    return layer(jnp.sin(x), w) * 2


mapped_inputs = (like(8, 16), like(16, 16))


def layers(ws, x):
    x = lax.with_sharding_constraint(x, on("x", None))
    return jnp.sum(lax.scan(lambda h, w: (layer(h, w), None), x, ws)[0] ** 2)


looped = jax.grad(layers)
looped_inputs = (like(3, 16, 16), like(8, 16))


def nested(ws, x):
    """A shard_map over one axis in a loop in a loop, the other axis left to the partitioner."""
    part = jax.shard_map(lambda h: lax.psum(h, "x"), mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"})

    def outer(h, w):
        h = lax.fori_loop(0, 2, lambda _, g: g + part(h)[:1] @ w, h)
        return lax.with_sharding_constraint(h, on("x", "y")), None

    return lax.scan(outer, x, ws)[0]


nested_inputs = (like(3, 16, 16), like(8, 16))


def branches(flag, w, x):
    return lax.cond(flag, lambda h: layer(h, w), lambda h: jnp.cos(h), x)


branches_inputs = (jax.ShapeDtypeStruct((), bool), like(16, 16), like(8, 16, spec=("x", None)))

rematerialized = jax.grad(lambda w, x: jax.checkpoint(lambda x: jnp.sum(layer(layer(x, w), w)))(x))
rematerialized_inputs = (like(16, 16), like(8, 16))


def indivisible(x):
    return jnp.sum(lax.with_sharding_constraint(x * 2, on("x", None)))


indivisible_inputs = (like(6, 3),)


@jax.jit
def helper(x):
    return jnp.tanh(x) @ x.T


def called_twice(a, b):
    return helper(a) + helper(b)


called_twice_inputs = (like(8, 8, spec=("x", None)), like(8, 8, spec=(None, "y")))


def special(x):
    """What lowers to CHLO operations, which Shardy has no rules for."""
    ones = [jnp.square, jnp.arcsinh, jnp.tan, jnp.isinf, lax.erf_inv, lax.digamma, lax.lgamma, lax.bessel_i1e]
    twos = [jnp.nextafter, lax.zeta, lax.polygamma]
    norms = jnp.var(x, axis=-1), jnp.linalg.norm(x, axis=0), jax.nn.gelu(x, approximate=False), lax.conj(x + 1j)
    return [f(x) for f in ones], [f(x, x) for f in twos], norms, lax.top_k(x, 3)


special_inputs = (like(16, 64, spec=("x", "y")),)
