"""Custom calls of TPUs and GPUs for matrices, against JAX's own factorizations on CPU."""

from __future__ import annotations

import json
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
    "LuRealDecompositionBlock": ("(f32[2,4,4], s32[2,4], s32[2,4])", lambda x: jax.lax.linalg.lu(x)),
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


def _called(target: str, *values: np.ndarray, results: str, config: str = "") -> list[np.ndarray]:
    types = [f"f32[{','.join(map(str, value.shape))}]" for value in values]
    parameters = "".join(f"  x{number} = {type} parameter({number})\n" for number, type in enumerate(types))
    operands = ", ".join(f"x{number}" for number in range(len(values)))
    call = f'  ROOT call = {results} custom-call({operands}), custom_call_target="{target}"{config}\n'
    text = f"HloModule m\n\nENTRY main {{\n{parameters}{call}}}\n"
    count = results.count("[")
    return [np.asarray(each) for (each,) in results_of(Interpreter(text, 1).run([[value] for value in values]), count)]


def _vectors(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_eigenvectors_are_those_of_the_matrix() -> None:
    x = np.asarray(_symmetric(jax.numpy.asarray(_vectors(1, 2, 4, 4))))
    vectors, values = _called("Eigh", x, results="(f32[2,4,4], f32[2,4])")
    np.testing.assert_allclose(values, np.asarray(jax.numpy.linalg.eigvalsh(x)), atol=1e-5)
    np.testing.assert_allclose(x @ vectors, vectors * values[..., None, :], atol=1e-5)


@pytest.mark.parametrize("size", [7, 8])
def test_eigenvectors_of_quadrants(size: int) -> None:
    x = np.zeros((8, 8), np.float32)
    x[:size, :size] = np.asarray(_symmetric(jax.numpy.asarray(_vectors(2, 1, size, size))))[0]
    quadrants = [part for rows in np.split(x, 2) for part in np.split(rows, 2, 1)]
    low, high, *parts = _called("EighTpu", *quadrants, results=f"({', '.join(['f32[4]'] * 2 + ['f32[4,4]'] * 4)})")
    values, rows = np.concatenate([low, high]), np.block([parts[:2], parts[2:]])
    wanted = np.asarray(jax.numpy.linalg.eigvalsh(x[:size, :size]))
    np.testing.assert_allclose(values, [*wanted, *[0] * (8 - size)], atol=1e-5)
    np.testing.assert_allclose(rows @ x, rows * values[:, None], atol=1e-5)
    np.testing.assert_allclose(rows @ rows.T, np.eye(8), atol=1e-5)


def test_vectors_of_equal_eigenvalues_are_not_known() -> None:
    x = np.diag(np.array([1, 2, 2, 5], np.float32))
    vectors, values = _called("Eigh", x, results="(f32[4,4], f32[4])")
    np.testing.assert_allclose(values, [1, 2, 2, 5])
    np.testing.assert_allclose(vectors[:, [0, 3]], np.eye(4)[:, [0, 3]])
    assert np.isnan(vectors[:, 1:3]).all()


def test_the_compact_form_of_reflections() -> None:
    turned, taus = np.linalg.qr(_vectors(3, 6, 4), mode="raw")
    packed = turned.T
    vectors = np.tril(packed, -1) + np.eye(6, 4)
    (found,) = _called(
        "CompactWyHelper",
        ((np.triu(vectors.T @ vectors, 1) + np.eye(4)) * -taus).astype(np.float32),
        results="f32[4,4]",
    )
    wanted = np.asarray(jax.lax.linalg.householder_product(packed, taus))
    np.testing.assert_allclose((np.eye(6) + vectors @ found @ vectors.T)[:, :4], wanted, atol=1e-5)


@pytest.mark.parametrize("form", ["NO_TRANSPOSE", "TRANSPOSE"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_a_triangular_system_of_cublas(form: str, lower: bool, unit: bool) -> None:
    a, b = _vectors(4, 4, 4) + 4 * np.eye(4, dtype=np.float32), _vectors(5, 4, 3)
    options = {"left_side": True, "lower": lower, "unit_diagonal": unit, "transpose_a": form}
    solved, _ = _called(
        "__cublas$triangularSolve", a, b, results="(f32[4,3], s8[0])", config=f", backend_config={json.dumps(options)}"
    )
    wanted = jax.scipy.linalg.solve_triangular(a, b, trans=int(form == "TRANSPOSE"), lower=lower, unit_diagonal=unit)
    np.testing.assert_allclose(solved, np.asarray(wanted), rtol=1e-4, atol=1e-5)
