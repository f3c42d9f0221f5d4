"""A program on its way through JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .wrapped import Wrapped


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
