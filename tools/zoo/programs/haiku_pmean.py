"""Haiku: hk.transform, data parallel in a shard_map with lax.pmean."""

import haiku as hk
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
network = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([64, 64, 4])(x)))


def local_step(params, x, y):
    loss = lambda params: jnp.mean((network.apply(params, x) - y) ** 2)
    gradients = lax.pmean(jax.grad(loss)(params), "i")
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


step = jax.jit(jax.shard_map(local_step, mesh=mesh, in_specs=(P(), P("i"), P("i")), out_specs=P(), check_vma=False))


def step_inputs():
    params = network.init(jax.random.key(0), jnp.ones((1, 16)))
    batch = NamedSharding(mesh, P("i"))
    return params, jax.device_put(jnp.ones((32, 16)), batch), jax.device_put(jnp.ones((32, 4)), batch)
