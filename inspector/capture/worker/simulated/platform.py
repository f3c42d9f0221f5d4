"""What depends on the platform of devices that are not there: choices by platform, and calls back to the host.

No compiler can make a call to the host for such a device: they are left out, and told of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
from jax.interpreters import mlir

from ..program.structure import equations_of, place_of

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


def platform_branches(jaxpr: Any, platform: str) -> Iterator[tuple[str | None, str]]:
    """For each choice by platform in a program: where it is made, and what is taken, in words."""
    for equation in equations_of(jaxpr):
        if equation.primitive.name == "platform_index":
            yield place_of(equation), _taken(equation.params.get("platforms", ()), platform)


def _taken(platforms: Any, platform: str) -> str:
    names = {"cuda": ("cuda", "gpu"), "rocm": ("rocm", "gpu")}.get(platform, (platform,))
    for choice in platforms:
        if choice is not None and set(choice) & set(names):
            return f"the branch for {platform} was taken"
    return f"the default was taken: there is no branch for {platform}"
