"""In a process of its own: the results of JAX on CPU, and the HLO that it was given and returned, for each function.

Prints nothing; writes `NAME.source.hlo`, `NAME.optimized.hlo` and `NAME.npz` to a folder.
"""

import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)
A = rng.normal(size=(4, 6))
B = rng.normal(size=(4, 6))
M = rng.normal(size=(3, 4, 5))
POSITIVE = np.abs(A) + 0.1
INTS = rng.integers(-20, 20, (4, 6)).astype(np.int32)
OTHER = rng.integers(-3, 4, (4, 6)).astype(np.int32)
BITS = rng.integers(0, 2**32, (4, 6)).astype(np.uint32)
COUNTS = rng.integers(0, 40, (4, 6)).astype(np.uint32)
FLAGS = rng.integers(0, 2, (4, 6)).astype(bool)
COMPLEX = A + 1j * B
SQUARE = M[:, :, :4] @ np.swapaxes(M[:, :, :4], 1, 2) + 4 * np.eye(4)
IMAGE = rng.normal(size=(2, 8, 9, 4))
KERNEL = rng.normal(size=(3, 2, 4, 6))
INDICES = rng.integers(-1, 9, (5, 3)).astype(np.int32)
TABLE = rng.normal(size=(7, 8, 3))
TIES = rng.integers(0, 4, (5, 40)).astype(np.float64)


def conv(x, k, **kw):
    return lax.conv_general_dilated(
        x, k, kw.pop("strides", (1, 1)), kw.pop("padding", "SAME"), dimension_numbers=("NHWC", "HWIO", "NHWC"), **kw
    )


def grouped_gradient(x, k):
    return jax.grad(lambda k: jnp.sum(jnp.sin(conv(x, k, feature_group_count=2))))(k)


def pooled(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 3, 1), (1, 2, 2, 1), "SAME")


def argmax(x):
    return lax.argmax(x, 1, jnp.int32), lax.argmin(x, 0, jnp.int32)


def scatter(table, indices, updates, op, **kw):
    numbers = lax.ScatterDimensionNumbers((1, 2), (0,), (0,))
    return op(table, indices[:, :1], updates, numbers, **kw)


def batched_gather(x, i):
    return jnp.take_along_axis(x, i, axis=1)


RAGGED = (rng.normal(size=(11, 4)), rng.normal(size=(3, 4, 5)), np.array([4, 0, 6], np.int32))


def ragged_gradient(x, y, n):
    return jax.grad(lambda x, y: jnp.sum(jnp.sin(lax.ragged_dot(x, y, n))), (0, 1))(x, y)


def newton(x):
    return lax.while_loop(
        lambda s: jnp.any(s[1] > 1e-3), lambda s: ((s[0] + x / s[0]) / 2, jnp.abs(s[0] ** 2 - x)), (x, x)
    )[0]


def branches(i, x):
    return lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * 2], x)


UNARY = (
    *(
        "abs",
        "cbrt",
        "ceil",
        "cos",
        "erf",
        "exp",
        "expm1",
        "floor",
        "is_finite",
        "log1p",
        "logistic",
        "neg",
        "round",
        "sign",
    ),
    *("sin", "tan", "tanh", "asinh", "atan", "digamma", "erf_inv", "bessel_i1e"),
)
BINARY = ["add", "atan2", "div", "max", "min", "mul", "rem", "sub"]

PROGRAMS = {
    **{name: (getattr(lax, name), A * 0.9 if name != "erf_inv" else np.tanh(A)) for name in UNARY},
    **{name: (getattr(lax, name), POSITIVE) for name in ("log", "sqrt", "rsqrt", "lgamma")},
    **{name: (getattr(lax, name), A, B) for name in BINARY},
    **{f"{name}_int": (getattr(lax, name), INTS, OTHER) for name in ("add", "div", "max", "mul", "rem", "sub")},
    **{f"{name}_bits": (getattr(lax, name), BITS, COUNTS) for name in ("shift_left", "shift_right_logical")},
    "shift_right_arithmetic": (lax.shift_right_arithmetic, INTS, np.abs(OTHER) * 12),
    **{f"bitwise_{name}": (getattr(lax, f"bitwise_{name}"), BITS, COUNTS) for name in ("and", "or", "xor")},
    "not": (lax.bitwise_not, INTS),
    "population_count": (lax.population_count, BITS),
    "clz": (lax.clz, BITS >> COUNTS % 32),
    "integer_pow": (lambda x: x**3, INTS),
    "pow": (lax.pow, POSITIVE, B),
    "round_even": (
        partial(lax.round, rounding_method=lax.RoundingMethod.TO_NEAREST_EVEN),
        np.arange(24.0).reshape(4, 6) / 2,
    ),
    "round_away": (lax.round, np.arange(24.0).reshape(4, 6) / 2 - 6),
    "select": (jnp.where, FLAGS, A, B),
    "logical": (lambda p, q: (p & q, p | ~q, p ^ q), FLAGS, FLAGS[::-1]),
    "clamp": (lambda x: lax.clamp(-0.5, x, 0.25), A),
    "compare": (lambda x, y: (x < y, x >= y, x == y, x != y), INTS, OTHER),
    "convert": (lambda x: (x.astype(jnp.int32), (x * 100).astype(jnp.uint8), x.astype(bool)), A * 3),
    "bitcast": (lambda x: lax.bitcast_convert_type(x.astype(jnp.float32), jnp.uint32), INTS.astype(np.float64)),
    "bitcast_bf16": (lambda x: lax.bitcast_convert_type(x.astype(jnp.bfloat16), jnp.uint16), INTS.astype(np.float64)),
    "bitcast_split": (lambda x: lax.bitcast_convert_type(x, jnp.uint8), BITS),
    "complex": (lambda z: (z * jnp.conj(z) + z, jnp.real(z), jnp.imag(z), jnp.abs(z), jnp.exp(z)), COMPLEX),
    "fft": (lambda z: (jnp.fft.fft2(z), jnp.fft.ifft(z)), COMPLEX),
    "rfft": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2), A),
    "broadcast": (lambda x: lax.broadcast_in_dim(x, (6, 2, 4), (2, 0)), A),
    "iota": (lambda x: x + lax.broadcasted_iota(jnp.float64, (4, 6), 1), A),
    "slices": (lambda x: (x[1:4:2, ::3], x[:, ::-1], jnp.concatenate([x, x[:1]], 0)), A),
    "pad": (lambda x: lax.pad(x, 9.0, ((1, 2, 1), (-1, -2, 0))), A),
    "pad_negative": (lambda x: lax.pad(x, 9.0, ((-3, 1, 2), (2, -4, 3))), A),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, i + 3), (2, 2)), A, np.int32(3)),
    "dynamic_update": (lambda x, y, i: lax.dynamic_update_slice(x, y[:2, :3], (i, jnp.int32(-5))), A, B, np.int32(7)),
    "dot": (lambda x, y: x @ y.T, A, B),
    "dot_batch": (lambda x: jnp.einsum("bij,bkj->kbi", x, x), M),
    "dot_int": (lambda x, y: lax.dot(x, y.T), INTS, OTHER),
    "ragged_dot": (lambda x, y, n: lax.ragged_dot(x, y, n), *RAGGED),
    "ragged_dot_gradient": (ragged_gradient, *RAGGED),
    "reduce": (lambda x: (x.sum(1), x.prod(0), x.max(), x.min(1)), A),
    "reduce_int": (lambda x: (x.sum(1), x.max(0), jnp.any(x > 3, 1), jnp.all(x > -30)), INTS),
    "argmax": (argmax, A),
    "argmax_ties": (argmax, TIES),
    "cumulative": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x), lax.cumlogsumexp(x)), A),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), jnp.argsort(-x, 1, stable=True)), TIES),
    "sort_keys": (lambda x, y: lax.sort((x, y, y), num_keys=2), TIES, np.flip(TIES).copy()),
    "sort_nan": (jnp.sort, np.where(FLAGS, np.nan, A)),
    "top_k": (lambda x: lax.top_k(x, 5), TIES),
    "conv": (conv, IMAGE, KERNEL),
    "conv_strides": (partial(conv, strides=(2, 3), padding=((1, 2), (0, 1)), rhs_dilation=(2, 1)), IMAGE, KERNEL),
    "conv_dilated": (partial(conv, lhs_dilation=(2, 2), padding=((-1, 2), (1, -2))), IMAGE, KERNEL),
    "conv_groups": (partial(conv, feature_group_count=2), IMAGE, KERNEL[:, :, :2]),
    "conv_group_gradient": (grouped_gradient, IMAGE, KERNEL[:, :, :2]),
    "conv_gradient": (jax.grad(lambda x, k: jnp.sum(jnp.sin(conv(x, k, strides=(2, 1)))), (0, 1)), IMAGE, KERNEL),
    "pool": (pooled, IMAGE),
    "pool_gradient": (jax.grad(lambda x: jnp.sum(jnp.sin(pooled(x)))), IMAGE),
    "gather": (lambda x, i: x[i[:, 0], i[:, 1]], TABLE, INDICES),
    "gather_slices": (lambda x, i: x.at[i[:, 0], 2:5].get(mode="clip"), TABLE, INDICES),
    "gather_batch": (batched_gather, A, np.abs(INTS) % 6),
    "gather_fill": (lambda x, i: x.at[i].get(mode="fill", fill_value=-1.0), TABLE, INDICES),
    "scatter_add": (partial(scatter, op=lax.scatter_add), TABLE, INDICES, TABLE[:5]),
    "scatter_max": (partial(scatter, op=lax.scatter_max), TABLE, INDICES, TABLE[:5]),
    "scatter_mul": (partial(scatter, op=lax.scatter_mul), TABLE, INDICES, TABLE[:5]),
    "scatter_set": (lambda x, i: x.at[i].set(7.0), TABLE, np.array([0, 5, 2])),
    "scatter_window": (lambda x, i: x.at[1:3, i].add(x[:2, :3]), A, np.array([0, 5, 5])),
    "scatter_apply": (lambda x, i: x.at[i].apply(jnp.sin), A, np.array([0, 2])),
    "while": (newton, POSITIVE),
    "scan": (lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), x[0], x), A),
    "scan_reverse": (lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), x[0], x, reverse=True), A),
    "branches": (jax.vmap(branches), np.array([0, 5, 1, 2]), A),
    "switch": (branches, np.int32(1), A),
    "cholesky": (jnp.linalg.cholesky, SQUARE),
    "triangular": (lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True), SQUARE, M),
    "threefry": (
        lambda k: jax.random.bits(jax.random.wrap_key_data(k), (3, 5), jnp.uint32),
        np.array([3, 4], np.uint32),
    ),
    "normal": (lambda k: jax.random.normal(jax.random.wrap_key_data(k), (3, 5)), np.array([3, 4], np.uint32)),
    "randint": (lambda k: jax.random.permutation(jax.random.wrap_key_data(k), 17), np.array([3, 4], np.uint32)),
    "attention": (lambda x: jax.nn.softmax(x @ x.T) @ x, A),
    "layer_norm": (jax.grad(lambda x: jnp.sum(jnp.cos(jax.nn.standardize(jax.nn.gelu(x))))), A),
    "select_n": (lambda i, x: lax.select_n(i, x, x * 2, x * 3), np.abs(INTS) % 3, A),
    "associative": (lambda x: lax.associative_scan(jnp.add, x, axis=1), M),
    "map": (lambda x: lax.reduce(x, 0.0, lambda a, b: a + b * 1.0, (0,)), A),
}


ON_TPU = ("cholesky", "qr", "ragged_dot", "ragged_dot_gradient", "solve", "triangular")
"""Programs that are lowered for TPUs, where they have instructions of XLA's own; CPUs compute them for comparison."""


def main(folder: str) -> None:
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    for name, (function, *inputs) in PROGRAMS.items():
        lowered = jax.jit(function).lower(*inputs)
        compiled = lowered.compile()
        if name in ON_TPU:
            lowered = jax.jit(function).trace(*inputs).lower(lowering_platforms=("tpu",))
        found = jax.tree.leaves(compiled(*inputs))
        place = Path(folder)
        modules = {"source": lowered.compiler_ir("hlo").get_hlo_module()}
        if name not in ON_TPU:
            modules["optimized"] = compiled.runtime_executable().hlo_modules()[0]
        for stage, module in modules.items():
            (place / f"{name}.{stage}.hlo").write_text(module.to_string(options))
        outputs = {f"out_{number}": np.asarray(each) for number, each in enumerate(found)}
        np.savez(place / name, **{f"in_{number}": each for number, each in enumerate(inputs)}, **outputs)


if __name__ == "__main__":
    main(sys.argv[1])
