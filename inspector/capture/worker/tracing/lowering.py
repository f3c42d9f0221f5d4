"""A program on its way through JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .wrapped import Wrapped

MISSES = ("cache_miss", "call_impl_cache_miss", "aot_cache_miss")
"""JAX's functions for calls that C++ cannot make (JAX 0.7 to 0.12); the last is that of a compiled function."""

MAX_DEPTH = 40
"""Frames in which a `cache_miss` is searched for."""


@dataclass
class Lowering:
    """A program that was lowered: what it was lowered from, and the variables of the call that wanted it.

    `arguments` are those of `lower_sharding_computation`, by name; they go when the program is compiled.
    """

    lower: Callable[..., Any] | None
    arguments: dict[str, Any]
    seconds: float
    caller: dict[str, Any]
    number: int | None = None
    name: str = ""
    id: str = ""
    compile_seconds: float = 0.0
    cached: bool = False
    wrapped: Wrapped | None = None
    captured: Literal["", "compiled", "full"] = ""


def caller_of(frame: FrameType | None) -> dict[str, Any]:
    """The variables of the innermost `cache_miss` on the stack, and its name under the empty one; none without it."""
    for _ in range(MAX_DEPTH):
        if frame is None:
            break
        if (name := frame.f_code.co_name) in MISSES:
            return {"": name, **frame.f_locals}
        frame = frame.f_back
    return {}
