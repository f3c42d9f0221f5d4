"""Kernels in a program: their modules are what JAX makes of them without us."""

from __future__ import annotations

import base64
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from shardscope.inspector.capture.protocol.workspace import MAX_ELEMENTS, without_constants
from shardscope.inspector.capture.worker import equation_numbers, modules, tagging
from shardscope.inspector.capture.worker.program.jaxpr_facts import Table

try:
    from jax.experimental.pallas import mosaic_gpu as plgpu
except ImportError:
    plgpu = None  # type: ignore[assignment]


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


def on_gpu(x: Any) -> Any:
    kernel = plgpu.kernel(double, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype))
    return kernel(jnp.sin(x)) + 1


CONFIGURATIONS = {
    "tpu": r'@tpu_custom_call\(.*?backend_config = ("(?:[^"\\]|\\.)*")',
    "cuda": r'@mosaic_gpu_v2\(.*?kernel_hash = ("(?:[^"\\]|\\.)*"), module = ("(?:[^"\\]|\\.)*")',
}
"""What holds the bytes of a kernel's module, by the platform."""


def kernels(text: str, platform: str) -> list[str]:
    return re.findall(CONFIGURATIONS[platform], text)


@pytest.mark.parametrize(("function", "platform"), [(inner, "tpu"), (looped, "tpu"), (on_gpu, "cuda")])
def test_kernels_keep_their_bytes(function: Any, platform: str) -> None:
    if platform == "cuda" and (plgpu is None or jax.__version_info__ < (0, 8)):
        pytest.skip("this JAX has no such Mosaic for GPUs")
    x = jnp.ones((8, 128))
    theirs = jax.jit(function).trace(x).lower(lowering_platforms=(platform,)).as_text(debug_info=True)
    jax.clear_caches()
    traced = jax.jit(function).trace(x)
    table = Table(traced.jaxpr)
    table.encode()
    numbers = equation_numbers.EquationNumbers()
    with equation_numbers.numbered(table.kept) as problem:
        lowered = traced.lower(lowering_platforms=(platform,))
    assert problem is None
    assert tagging.tag(lowered.compiler_ir("stablehlo"), None, numbers) is None
    ours = lowered.as_text(debug_info=True)
    assert len(kernels(theirs, platform)) == 1
    if jax.__version_info__ < (0, 8):  # whose kernels have stacks in them, which differ from call to call
        (body,) = re.findall(r"body\\22: \\22([^\\]+)", *kernels(ours, platform))
        assert b"~eq" not in base64.b64decode(body)
    else:
        assert kernels(ours, platform) == kernels(theirs, platform)
    assert "~eq" not in ours
    assert numbers.encode(), "equations beside the kernel have their numbers"


def test_large_constants_are_compiled_as_they_are() -> None:
    """Their values are in no text that shardscope reads, which MLIR's own spelling says."""
    large = np.random.default_rng(0).normal(size=(128, 128)).astype(np.float32)
    x = np.ones((2, 128), np.float32)

    def function(x: jax.Array) -> jax.Array:
        return jnp.sin(x) @ large + np.float32(2)

    lowered = jax.jit(function).lower(x)
    assert tagging.tag(lowered.compiler_ir("stablehlo")) is None
    assert "~op" in lowered.as_text(debug_info=True)
    np.testing.assert_array_equal(lowered.compile()(x), jax.jit(function)(x))
    text = modules.text_of(lowered.compiler_ir("stablehlo"))
    assert text.count("dense_resource<__elided__>") == 1
    assert "dense<2.000000e+00>" in text
    whole = lowered.as_text(debug_info=True).encode()
    assert len(whole) > 2 * large.nbytes > len(text)
    assert without_constants(whole) == text.encode()


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, jnp.int4])
@pytest.mark.parametrize("count", [MAX_ELEMENTS, MAX_ELEMENTS + 1])
def test_dumps_leave_out_what_texts_leave_out(dtype: Any, count: int) -> None:
    """Of digits, as XLA writes them, as many as MLIR leaves out of elements."""
    values = (np.arange(count) % 2).astype(dtype)
    lowered = jax.jit(lambda: values).lower()
    text = modules.text_of(lowered.compiler_ir("stablehlo"))
    assert without_constants(lowered.as_text(debug_info=True).encode()) == text.encode()
    assert ("elided" in text) is (count > MAX_ELEMENTS)
