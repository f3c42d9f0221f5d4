"""Custom calls of TPUs for matrices, against JAX's own factorizations on CPU."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest
from jax import Array
from shardscope.inspector.evaluate.compare import results_of
from shardscope.inspector.evaluate.interpreter import Interpreter

pytestmark = pytest.mark.once

TEXT = """HloModule m

ENTRY main {{
  x = f32[2,4,4]{{2,1,0}} parameter(0)
  ROOT call = {type} custom-call(x), custom_call_target="{target}"
}}
"""


def _symmetric(x: Array) -> Array:
    lower = jax.numpy.tril(x)
    return lower + jax.numpy.swapaxes(jax.numpy.tril(x, -1), 1, 2)


CALLS: dict[str, tuple[str, Callable[[Array], tuple[Array, ...]]]] = {
    "Cholesky": ("f32[2,4,4]", lambda x: (jax.numpy.linalg.cholesky(_symmetric(x)),)),
    "InvertDiagBlocksLowerTriangular": ("f32[2,4,4]", lambda x: (jax.numpy.linalg.inv(jax.numpy.tril(x)),)),
    "InvertDiagBlocksUpperTriangular": ("f32[2,4,4]", lambda x: (jax.numpy.linalg.inv(jax.numpy.triu(x)),)),
    "LuDecompositionBlock": ("(f32[2,4,4], s32[2,4], s32[2,4])", lambda x: jax.lax.linalg.lu(x)),
}


@pytest.mark.parametrize("target", CALLS)
def test_as_jax_factorizes(target: str) -> None:
    type_text, function = CALLS[target]
    x = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32) + 6 * np.eye(4, dtype=np.float32)
    wanted = function(jax.numpy.asarray(x))
    found = results_of(Interpreter(TEXT.format(type=type_text, target=target), 1).run([[x]]), len(wanted))
    for (each,), expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(each, np.asarray(expected), rtol=1e-4, atol=1e-5)


def test_a_matrix_without_a_factor_gives_nan() -> None:
    x = np.stack([-np.eye(4, dtype=np.float32), 4 * np.eye(4, dtype=np.float32)])
    (found,) = Interpreter(TEXT.format(type="f32[2,4,4]", target="Cholesky"), 1).run([[x]])
    assert isinstance(found, np.ndarray)
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], 2 * np.eye(4))
