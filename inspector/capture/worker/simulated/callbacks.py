"""Calls back to the host, which no compiler can make for a device that is not there: they are left out, and told of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
from jax.interpreters import mlir

from ..program.walk import equations_of, place_of

CALLBACKS = ("debug_callback", "debug_print", "pure_callback", "io_callback")
"""Primitives that call the host (jax._src.callback and jax._src.debugging, JAX 0.7 to 0.12)."""


def leave_out(jaxpr: Any, platform: str) -> Iterator[tuple[str | None, str]]:
    """Have them lowered to nothing for a platform; says where each is, and what stands for it, in words."""
    for equation in equations_of(jaxpr):
        primitive = equation.primitive
        if primitive.name in CALLBACKS:
            mlir.register_lowering(primitive, _zeros, platform=platform)
            instead = "what it gives is zeros" if equation.outvars else "with what is computed for it alone"
            yield place_of(equation), f"{primitive.name} was left out, {instead}: no host can be called for this target"


def _zeros(ctx: Any, *operands: Any, **_: Any) -> Any:
    if ctx.tokens_in is not None and len(ctx.tokens_in.effects()):
        ctx.set_tokens_out(ctx.tokens_in)
    avals = ctx.avals_out
    zeros = mlir.lower_fun(lambda *_: [jnp.zeros(aval.shape, aval.dtype) for aval in avals], multiple_results=True)
    return zeros(ctx, *operands)
