"""A program on its way through JAX."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

from .. import failures

if TYPE_CHECKING:
    from .wrapped import Wrapped

MISSES = ("cache_miss", "call_impl_cache_miss", "aot_cache_miss")
"""JAX's functions for calls that C++ cannot make (JAX 0.7 to 0.12); the last is that of a compiled function."""

AOT = "jit_lower"
"""JAX's `lower` of a jitted function, with the function itself as its first argument (JAX 0.7 to 0.12)."""

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
    is_jitted_by_user: bool = False
    is_earlier: bool = False


def plain_name(module: str) -> str:
    """The name of a module that JAX lowered, without `jit_` or `jit()`."""
    return re.sub(r"^(?:jit|pmap)(?:_+(.*)|\((.*)\))$", r"\1\2", module)


def caller_of(frame: FrameType | None) -> dict[str, Any]:
    """The variables of the innermost `cache_miss` on the stack, and its name under the empty one; none without it.

    Where a jitted function is lowered ahead of time, `fun`, `jit_info`, `args` and `kwargs` are those of its call.
    """
    found = miss_of(frame)
    if found is None:
        return {}
    name, names = found.f_code.co_name, found.f_locals
    if name == AOT:
        jitted = names.get("jit_func")
        names = {**names, "fun": getattr(jitted, "_fun", None), "jit_info": getattr(jitted, "_jit_info", None)}
    return {"": name, **names}


def miss_of(frame: FrameType | None) -> FrameType | None:
    """The innermost frame in which JAX does what C++ cannot do for a call."""
    found = (each for each in failures.outwards(frame, MAX_DEPTH) if each.f_code.co_name in (*MISSES, AOT))
    return next(found, None)


def is_jitted_by_user(frame: FrameType | None, function: Any) -> bool:
    """Return whether a function of JAX itself was jitted outside of JAX, where it is called."""
    frame = miss_of(frame)
    while frame is not None and frame.f_code.co_filename.endswith(("traceback_util.py", "pjit.py", "stages.py")):
        frame = frame.f_back
    if frame is None or failures.is_internal(frame.f_code.co_filename):
        return False
    known_as = getattr(sys.modules.get(getattr(function, "__module__", "")), getattr(function, "__name__", ""), None)
    return getattr(known_as, "__wrapped__", None) is not function
