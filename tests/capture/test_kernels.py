"""Kernels in a program: their modules are what JAX makes of them without us."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from shardscope.inspector.capture.worker import equation_numbers, tagging
from shardscope.inspector.capture.worker.program.jaxpr_facts import Table


def double(x_ref: Any, y_ref: Any) -> None:
    with jax.named_scope("inside"):
        y_ref[...] = x_ref[...] * 2


@jax.jit
def inner(x: Any) -> Any:
    kernel = pl.pallas_call(double, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), name="double")
    return kernel(jnp.sin(x)) + 1


def looped(x: Any) -> Any:
    with jax.named_scope("loop"):
        return jax.lax.scan(lambda carry, _: (inner(carry), None), jnp.cos(x), None, length=2)[0]


def kernels(text: str) -> list[str]:
    return re.findall(r'@tpu_custom_call\(.*?backend_config = ("(?:[^"\\]|\\.)*")', text)


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="known: JAX 0.7 gets numbers into kernels")
@pytest.mark.parametrize("function", [inner, looped])
def test_kernels_keep_their_bytes(function: Any) -> None:
    x = jnp.ones((8, 128))
    theirs = jax.jit(function).trace(x).lower(lowering_platforms=("tpu",)).as_text(debug_info=True)
    jax.clear_caches()
    traced = jax.jit(function).trace(x)
    table = Table(traced.jaxpr)
    table.encode()
    numbers = equation_numbers.EquationNumbers()
    with equation_numbers.numbered(table.kept) as problem:
        lowered = traced.lower(lowering_platforms=("tpu",))
    assert problem is None
    assert tagging.tag(lowered.compiler_ir("stablehlo"), None, numbers) is None
    ours = lowered.as_text(debug_info=True)
    assert len(kernels(theirs)) == 1
    assert kernels(ours) == kernels(theirs)
    assert "~eq" not in ours
    assert numbers.encode(), "equations beside the kernel have their numbers"
