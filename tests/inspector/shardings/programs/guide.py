"""The programs of the Shardy guide for JAX users, and one whose shardings are parts of an axis."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.custom_partitioning import BATCHING, SdyShardingRule, custom_partitioning
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

devices = np.array(jax.devices()[:8]).reshape(4, 2)
mesh = Mesh(devices, ("data", "model"))
square = Mesh(devices, ("x", "y"))


def on(*entries):
    return NamedSharding(mesh, P(*entries))


def numbers(*shape):
    return jnp.arange(float(np.prod(shape))).reshape(shape) % 97


def layers(x, w1, w2):
    return jnp.sin((jnp.tanh(x) @ w1) @ w2)


in_out = jax.jit(layers, in_shardings=(on("data", None), on(None, "model"), None), out_shardings=on(None, "data"))
in_out_inputs = (numbers(16, 128), numbers(128, 256), numbers(256, 8))


def open_dimension(x):
    return lax.with_sharding_constraint(x, on("data", P.UNCONSTRAINED))


open_dimension_inputs = (numbers(32, 64),)

gathered = jax.jit(
    jax.shard_map(
        lambda x: lax.all_gather(jnp.sin(x), "data", tiled=True),
        mesh=mesh,
        in_specs=P("data"),
        out_specs=P(),
        axis_names={"data"},
        check_vma=False,
    ),
    in_shardings=on(None, "model"),
)
gathered_inputs = (numbers(32, 64),)


def product(rule):
    """The guide's product, partitioned by hand, with one of the three spellings of its rule."""

    @custom_partitioning
    def found(x, y):
        return jnp.matmul(x, y)

    def partition(mesh, operands, result):
        first, second = ([*a.sharding.spec, *[None] * (a.ndim - len(a.sharding.spec))] for a in operands)
        *batch, i, j = first

        def local(x, y):
            return jnp.matmul(x, y) if j is None else lax.psum(jnp.matmul(x, y), j)

        wanted = NamedSharding(mesh, P(*first)), NamedSharding(mesh, P(*batch, j, second[-1]))
        return mesh, local, NamedSharding(mesh, P(*batch, i, second[-1])), wanted

    found.def_partition(partition, sharding_rule=rule)
    return found


def written_for_the_shapes(mesh, operands, result):
    batch = " ".join(f"b{number}" for number in range(len(operands[0].shape) - 2))
    return f"{batch} i j, {batch} j k -> {batch} i k"


RULES = (
    "... i j, ... j k -> ... i k",
    SdyShardingRule(((BATCHING, "i", "j"), (BATCHING, "j", "k")), ((BATCHING, "i", "k"),)),
    written_for_the_shapes,
)


def by_rules(x, y):
    return [product(rule)(x, jnp.cos(y)) for rule in RULES]


last_x, last_y = (NamedSharding(square, P(None, None, None, axis)) for axis in "xy")
by_rules = jax.jit(by_rules, in_shardings=(last_x, last_y))
by_rules_inputs = (numbers(2, 3, 16, 8), numbers(2, 3, 8, 16))


def split_axis(x):
    return jnp.sin(jnp.cos(x).reshape(2, 8, 3))


split_axis = jax.jit(split_axis, in_shardings=on("data", None))
split_axis_inputs = (numbers(16, 3),)
