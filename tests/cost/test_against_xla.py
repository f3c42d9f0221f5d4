"""Operations of products, against XLA's own count (HloCostAnalysis) and JAX's (jax.experimental.roofline)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from shardscope.inspector.cost.work import Workload
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.source import Source


def convolution(
    strides: tuple[int, ...], padding: Any, image: tuple[int, ...] | None = None, kernel: tuple[int, ...] | None = None
) -> Callable[..., Any]:
    return lambda a, b: jax.lax.conv_general_dilated(
        a, b, strides, padding, lhs_dilation=image, rhs_dilation=kernel, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "dot": (lambda a, b: a @ b, (96, 64), (64, 80)),
    "batched": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), (6, 32, 24), (6, 24, 40)),
    "two contracted": (lambda a, b: jnp.einsum("ijk,kjl->il", a, b), (32, 8, 24), (24, 8, 40)),
    "same": (convolution((1, 1), "SAME"), (2, 12, 12, 8), (3, 3, 8, 16)),
    "strided": (convolution((2, 2), "VALID"), (2, 13, 13, 8), (3, 3, 8, 16)),
    "dilated": (convolution((1, 1), ((2, 2), (2, 2)), None, (2, 2)), (2, 12, 12, 8), (3, 3, 8, 16)),
    "transposed": (convolution((1, 1), ((2, 2), (2, 2)), (2, 2)), (2, 6, 6, 8), (3, 3, 8, 16)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    function, left, right = PRODUCTS[name]
    arguments = (jax.ShapeDtypeStruct(left, jnp.float32), jax.ShapeDtypeStruct(right, jnp.float32))
    lowered = jax.jit(function).lower(*arguments)
    module = parse_module(Source("hlo", lowered.compile().as_text().encode()))
    workload = Workload(module, "gpu")
    counted = sum(
        workload.of(instruction).flops
        for computation in module.computations
        if computation.is_entry or not computation.name.startswith("fused")
        for instruction in computation.instructions
    )
    assert counted == lowered.compile().cost_analysis()["flops"]


def test_a_product_as_jax_counts_it() -> None:
    roofline = pytest.importorskip("jax.experimental.roofline", reason="it needs absl in some versions of JAX")
    function, left, right = PRODUCTS["dot"]
    _, told = roofline.roofline(function)(jnp.ones(left), jnp.ones(right))
    assert told.flops == 2 * 96 * 64 * 80
