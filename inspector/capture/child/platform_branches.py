"""Which branch of `lax.platform_dependent` is compiled for a platform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .stacks import Stacks


def platform_branches(jaxpr: Any, platform: str) -> Iterator[tuple[str | None, str]]:
    """For each choice by platform in a program: where it is made, and what is taken, in words."""
    stacks = Stacks()
    seen: set[int] = set()
    waiting = [jaxpr]
    while waiting:
        current = getattr(waiting.pop(), "jaxpr", None) or jaxpr
        if id(current) in seen:
            continue
        seen.add(id(current))
        for equation in current.eqns:
            if equation.primitive.name == "platform_index":
                stack = stacks.of(equation, [])
                frame = stacks.frames[stack[0]] if stack else None
                place = None if frame is None else f"{frame[0]}:{frame[2]}"
                yield place, _taken(equation.params.get("platforms", ()), platform)
            waiting += [
                item
                for value in equation.params.values()
                for item in (value if isinstance(value, (tuple, list)) else (value,))
                if hasattr(item, "jaxpr") or hasattr(item, "eqns")
            ]


def _taken(platforms: Any, platform: str) -> str:
    names = {"cuda": ("cuda", "gpu"), "rocm": ("rocm", "gpu")}.get(platform, (platform,))
    for choice in platforms:
        if choice is not None and set(choice) & set(names):
            return f"the branch for {platform} was taken"
    return f"the default was taken: there is no branch for {platform}"
