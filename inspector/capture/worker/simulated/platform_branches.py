"""Which branch of `lax.platform_dependent` is compiled for a platform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..program.walk import equations_of, place_of


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
