"""Gradients summed over microbatches: reduced in the loop, or after it?

The devices share the parameters, and a scan over microbatches adds up gradients. `each_time` differentiates with
respect to parameters that all devices share, so each gradient is shared as well, and the loop pays an all-reduce per
microbatch. `once` first lets each device call the parameters its own (varying, at no cost), adds up its own gradients
and sums over the devices after the loop. `automatic` leaves it to the partitioner and to what the target makes of it.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

DEVICES, MICROBATCHES, EXAMPLES, WIDTH = 4, 6, 8, 16
mesh = jax.make_mesh((DEVICES,), ("batch",), axis_types=(AxisType.Auto,))
by_examples = partial(jax.shard_map, mesh=mesh, in_specs=(P(), P(None, "batch")), out_specs=P())


def loss(params, x):
    """A mean square, for which every example is its own target."""
    W, b = params
    return jnp.mean((jnp.tanh(x @ W + b) - x) ** 2)


def accumulate(params, microbatches):
    """The mean gradient, one microbatch after the other."""

    def add(total, x):
        return jax.tree.map(jnp.add, total, jax.grad(loss)(params, x)), None

    total, _ = lax.scan(add, jax.tree.map(jnp.zeros_like, params), microbatches)
    return jax.tree.map(lambda g: g / len(microbatches), total)


def varying(x):
    """`x`, typed as each device's own; JAX 0.7 has another name for this cast."""
    return lax.pcast(x, "batch", to="varying") if hasattr(lax, "pcast") else lax.pvary(x, "batch")


automatic = jax.jit(accumulate)


@jax.jit
@by_examples
def each_time(params, microbatches):
    """A psum in the body of the loop, put there by the types: the transpose of sharing the parameters."""
    return jax.tree.map(lambda g: g / DEVICES, accumulate(params, microbatches))


@jax.jit
@by_examples
def once(params, microbatches):
    """A psum after the loop."""
    return lax.pmean(accumulate(jax.tree.map(varying, params), microbatches), "batch")


def once_inputs():
    """Parameters on all devices; microbatches as the first dimension, their examples sharded."""
    random = np.random.default_rng(0)
    params = random.normal(size=(WIDTH, WIDTH)) / 4, random.normal(size=WIDTH)
    microbatches = random.normal(size=(MICROBATCHES, EXAMPLES, WIDTH)).astype(np.float32)
    return (
        jax.device_put(tuple(p.astype(np.float32) for p in params), NamedSharding(mesh, P())),
        jax.device_put(microbatches, NamedSharding(mesh, P(None, "batch"))),
    )


each_time_inputs = automatic_inputs = once_inputs

if __name__ == "__main__":
    for function in (once, each_time, automatic):
        print(jnp.linalg.norm(function(*once_inputs())[0]))
