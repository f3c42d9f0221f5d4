"""All equations of a traced program, those in its loops, branches and calls too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .stacks import Stacks


def equations_of(jaxpr: Any) -> Iterator[Any]:
    """Every equation once, however often the jaxpr that it is in is used."""
    seen: set[int] = set()
    waiting = [jaxpr]
    while waiting:
        current = waiting.pop()
        current = getattr(current, "jaxpr", current)
        if id(current) in seen:
            continue
        seen.add(id(current))
        for equation in current.eqns:
            yield equation
            for value in equation.params.values():
                items = value if isinstance(value, (tuple, list)) else (value,)
                waiting += [item for item in items if hasattr(getattr(item, "jaxpr", item), "eqns")]


def place_of(equation: Any) -> str | None:
    """The user's line that an equation comes from, as `file:line`."""
    stacks = Stacks()
    stack = stacks.of(equation, [])
    return f"{stacks.frames[stack[0]][0]}:{stacks.frames[stack[0]][2]}" if stack else None
