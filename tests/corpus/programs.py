"""Small programs that between them make compilers print most of what they can print.

Each function below takes a mesh of eight devices with the axes `x` of 4 and `y` of 2 and returns a program and the
types of its arguments.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

try:
    from jax.sharding import AxisType
except ImportError:
    AxisType = None


def mesh_of(devices, names):
    """A mesh that leaves it to the compiler how values are sharded on it."""
    kinds = {"axis_types": (AxisType.Auto,) * len(names)} if AxisType else {}
    return Mesh(devices, names, **kinds)


def shard_map(function, mesh, in_specs, out_specs, **options):
    """Of any JAX; unchecked."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False, **options)
    from jax.experimental.shard_map import shard_map as older

    automatic = frozenset(mesh.axis_names) - options.get("axis_names", set(mesh.axis_names))
    return older(function, mesh, in_specs, out_specs, check_rep=False, auto=automatic)


def typed(mesh, *shape, dtype=jnp.float32, spec=None):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P() if spec is None else spec))


def dense(mesh):
    """Propagation, constraints and the gradient of a network."""

    def loss(weights, x):
        hidden = jax.nn.gelu(x @ weights["up"])
        hidden = lax.with_sharding_constraint(hidden, NamedSharding(mesh, P("x", "y")))
        return jnp.mean(jax.nn.log_softmax(hidden @ weights["down"])[:, 0])

    weights = {"up": typed(mesh, 32, 64, spec=P("x", "y")), "down": typed(mesh, 64, 32, spec=P("y", "x"))}
    return jax.value_and_grad(loss), (weights, typed(mesh, 16, 32, spec=P("x")))


def collectives(mesh):
    """All collectives by hand, over one axis, over both, and in groups that are no axes."""

    def body(a):
        total = lax.psum(a, "y") + lax.pmax(a, ("x", "y")) + lax.pmin(a, "x")
        gathered = lax.all_gather(a, "x", tiled=True)
        scattered = lax.psum_scatter(gathered, "x", tiled=True)
        ring = lax.ppermute(a, "x", [(i, (i + 1) % 4) for i in range(4)])
        turned = lax.all_to_all(a.reshape(4, -1), "x", 0, 0).reshape(a.shape)
        return total + scattered + ring + turned + lax.axis_index("y")

    mapped = shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    return mapped, (typed(mesh, 16, 16, spec=P("x", "y")),)


def control(mesh):
    """Loops and branches, nested, with collectives inside."""

    def program(x):
        def step(carry, row):
            carry = lax.cond(row[0] > 0, lambda c: c @ c, lambda c: c.T, carry)
            return carry, carry.sum()

        x, sums = lax.scan(step, x, x)
        x = lax.fori_loop(0, 5, lambda i, c: lax.switch(i % 3, [jnp.sin, jnp.cos, jnp.tanh], c), x)
        return lax.while_loop(lambda c: c.sum() < 10, lambda c: c + 1, x), sums

    return program, (typed(mesh, 16, 16, spec=P("x", "y")),)


def convolution(mesh):
    """Convolutions, windows and their gradients."""

    def loss(kernel, image):
        image = lax.conv_general_dilated(image, kernel, (1, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        image = lax.reduce_window(image, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.cumsum(image, axis=1).sum()

    return jax.grad(loss, (0, 1)), (typed(mesh, 3, 3, 4, 8), typed(mesh, 8, 16, 16, 4, spec=P("x")))


def indexing(mesh):
    """Gathers, scatters, slices, sorts."""

    def program(table, index):
        rows = table[index].at[:, 3].add(1.0)
        keys, values = lax.sort((rows[:, 0], rows[:, 1]), num_keys=1)
        top, where = lax.top_k(rows, 2)
        part = lax.dynamic_slice(rows, (index[0], 0), (4, 4))
        rows = lax.dynamic_update_slice(rows, part * 2, (0, index[1]))
        return rows.at[index % 8].set(0.0), keys, values, top, where, jnp.pad(part, ((1, 2), (0, 0)))[::2, ::-1]

    return program, (typed(mesh, 32, 16, spec=P("x")), typed(mesh, 8, dtype=jnp.int32))


def elements(mesh):
    """Operations on every element, and the types that elements can have."""

    def program(x, n, z):
        real = jnp.exp(x) * lax.rsqrt(x) + lax.erf_inv(x) + jnp.round(x) + lax.reduce_precision(x, 5, 2)
        whole = lax.population_count(n) ^ lax.clz(n) | lax.shift_right_logical(n, n) & ~n
        small = x.astype(jnp.bfloat16).astype(jnp.float8_e4m3fn).astype(jnp.float32) + x.astype(jnp.int8)
        bits = lax.bitcast_convert_type(x, jnp.uint32) + n.astype(jnp.uint32)
        return real, whole, small, bits, jnp.fft.fft(z) * 2j, jnp.clip(x, 0, 1) < 0.5, jnp.isfinite(x)

    return program, (
        typed(mesh, 8, 8, spec=P("x")),
        typed(mesh, 8, 8, dtype=jnp.int32),
        typed(mesh, 8, 8, dtype=jnp.complex64),
    )


def constants(mesh):
    """Constants of every kind, long ones and odd ones."""

    def program(x):
        ramp = jnp.asarray(np.arange(2048, dtype=np.float32).reshape(32, 64))
        odd = jnp.asarray(np.array([np.nan, np.inf, -np.inf, -0.0, 1e-38, 3.4e38], np.float32))
        flags = jnp.asarray(np.array([[True, False], [False, True]]))
        turns = jnp.asarray(np.array([1 + 2j, -3j], np.complex64))
        return (x @ ramp).sum() + odd.sum(), flags, turns * 1j, np.int8(3), jnp.uint32(7)

    return program, (typed(mesh, 16, 32, spec=P("x", "y")),)


def solvers(mesh):
    """Calls of libraries."""

    def program(a):
        square = a @ a.T + jnp.eye(8)
        return jnp.linalg.cholesky(square), jnp.linalg.qr(a)[0], jnp.linalg.eigh(square)[0], jnp.linalg.solve(square, a)

    return program, (typed(mesh, 8, 8),)


def randomness(mesh):
    """Random numbers, and integers dotted with integers."""

    def program(seed, x):
        key = jax.random.key(seed)
        noise = jax.random.normal(key, (8, 8)) + jax.random.bernoulli(key, 0.5, (8, 8))
        return noise, lax.dot(x, x, preferred_element_type=jnp.int32), jax.random.permutation(key, 8)

    return program, (typed(mesh, dtype=jnp.int32), typed(mesh, 8, 8, dtype=jnp.int8))


def scopes(mesh):
    """Names of all kinds, functions in functions, values kept and computed again."""

    @jax.checkpoint
    def block(x):
        with jax.named_scope("block \"one\", {é} 'two' \\ [3]"):
            return jnp.sin(x) * x

    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))

    def program(x):
        value, gradient = jax.value_and_grad(lambda x: jax.jit(lambda y: clipped(block(block(y))).sum())(x))(x)
        return lax.optimization_barrier((value, gradient))

    return program, (typed(mesh, 8, 8, spec=P("x", "y")),)


def callbacks(mesh):
    """Calls back into Python, with effects and without."""

    def program(x):
        jax.debug.print("sum {}", x.sum())
        return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((8,), jnp.float32), x)

    return program, (typed(mesh, 8),)


def ties(mesh):
    """Manual inside automatic, and shardings of odd shapes."""

    def inner(a):
        return lax.psum(a, "x") * lax.axis_size("x") if hasattr(lax, "axis_size") else lax.psum(a, "x")

    def program(a, b):
        a = shard_map(inner, mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"})(a)
        b = lax.with_sharding_constraint(b.reshape(-1, 3), NamedSharding(mesh, P(("x", "y"), None)))
        return a @ a.T, b, jnp.concatenate([b, b])

    return program, (typed(mesh, 16, 8, spec=P("x", "y")), typed(mesh, 24, 3, spec=P(("y", "x"))))


PROGRAMS = {
    program.__name__: program
    for program in (
        dense,
        collectives,
        control,
        convolution,
        indexing,
        elements,
        constants,
        solvers,
        randomness,
        scopes,
        callbacks,
        ties,
    )
}
"""Every program, by name."""
