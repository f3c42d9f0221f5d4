"""Programs made wide, against the same functions traced in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import jaxpr_as_fun
from shardscope.inspector.capture.worker.program.wide import wide_array, widened, x64

X = np.sin(np.arange(32)).reshape(4, 8).astype(np.float32)
ROWS = np.array([3, 1, 3, 0], np.int32)


@jax.custom_vjp
def doubled(x: Any) -> Any:
    return jnp.tanh(x) * 2


doubled.defvjp(lambda x: (doubled(x), x), lambda x, g: (g * (1 - jnp.tanh(x) ** 2) * 2,))

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "branches": lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
    "casts": lambda x: jnp.tanh(x.astype("bfloat16") @ x.T.astype("bfloat16")).astype("float32"),
    "constants": lambda x: x * np.asarray(X[0]) + np.float32(0.5),
    "convolution": lambda x: jnp.convolve(x.ravel(), x[0]),
    "gradients": lambda x: jax.grad(lambda x: jnp.sum(doubled(jnp.sin(x)) ** 2))(x),
    "loops": lambda x: lax.fori_loop(0, 3, lambda n, y: jnp.tanh(y + n), x),
    "products": lambda x: jnp.dot(x, x.T, precision=lax.DotAlgorithmPreset.BF16_BF16_F32),
    "reductions": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME") + jnp.logaddexp.reduce(x),
    "rounded": lambda x: lax.reduce_precision(x, 5, 2),
    "scans": lambda x: lax.scan(lambda c, row: (c + jnp.sin(row), c.sum()), jnp.zeros(8, x.dtype), x),
    "scattered": lambda x: jax.grad(lambda x: jnp.sum(jnp.take(x, ROWS, axis=0) ** 2))(x),
    "spectra": lambda x: jnp.abs(jnp.fft.fft(x)),
}
EXACT: dict[str, Callable[[Any], Any]] = {
    **FUNCTIONS,
    "casts": lambda x: jnp.tanh(x @ x.T),
    "products": lambda x: x @ x.T,
    "rounded": lambda x: x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_values_are_those_of_float64(name: str) -> None:
    with x64(False):
        traced = jax.make_jaxpr(FUNCTIONS[name])(X)
    with x64(True):
        found = jaxpr_as_fun(widened(traced))(wide_array(X))
        exact = jax.tree.leaves(EXACT[name](X.astype(np.float64)))
    for one, other in zip(found, exact, strict=True):
        assert one.dtype == other.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_bits_are_those_of_the_types_that_were_traced() -> None:
    def bits(x: Any) -> Any:
        return lax.bitcast_convert_type(x, jnp.int32), jax.random.normal(jax.random.key(3), (4,), jnp.float32)

    with x64(False):
        traced, (integers, drawn) = jax.make_jaxpr(bits)(X), bits(X)
    with x64(True):
        found = jaxpr_as_fun(widened(traced))(wide_array(X))
    assert (found[0] == integers).all()
    assert found[1].dtype == np.float64
    np.testing.assert_allclose(found[1], drawn, rtol=1e-5)
