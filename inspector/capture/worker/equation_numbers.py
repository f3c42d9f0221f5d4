"""The jaxpr equation of each StableHLO operation: exact, by numbers in the name scopes.

JAX puts the name scopes of an equation into the locations of all operations that it lowers it to, whatever it does with
it on the way: what is called, differentiated, copied or partly removed keeps them. So while a program is lowered, each
equation has one scope more, `~eq3.12~`: equation 12 of jaxpr 3. It is taken out of the locations at once.

The module of a kernel stands in the program as bytes that hold these scopes, too, and from which they cannot be taken:
equations of kernels and around them have no numbers.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...catalog.spellings import is_kernel
from .program.structure import bodies, equations_of

_MARK = re.compile(r"/~eq\d+\.\d+~|~eq\d+\.\d+~/?")
_NUMBERS = re.compile(r"~eq(\d+)\.(\d+)~")

LOWERINGS = ("pjit", "interpreters.pxla", "interpreters.partial_eval", "state.discharge", "ad_checkpoint")
"""Modules of `jax._src` whose caches have what JAX makes of jaxprs to lower them (JAX 0.7 to 0.12)."""


def forget_lowerings() -> None:
    """Have JAX lower again what the script has lowered, which has no numbers; a script that goes on compiles again."""
    for module in filter(None, (sys.modules.get(f"jax._src.{name}") for name in LOWERINGS)):
        for cache in [each for each in vars(module).values() if hasattr(each, "cache_clear")]:
            cache.cache_clear()


@contextmanager
def numbered(jaxprs: Sequence[Any]) -> Iterator[str | None]:
    """The equations of these jaxprs have their numbers; gives what is in the way of that in this JAX, if anything is.

    A jaxpr that is there twice has the numbers of its first place.
    """
    before: list[tuple[Any, Any]] = []
    problem = None
    try:
        seen = _of_kernels(jaxprs)
        for index, jaxpr in enumerate(jaxprs):
            if id(jaxpr) in seen:
                continue
            seen.add(id(jaxpr))
            for position, equation in enumerate(jaxpr.eqns):
                if _holds_kernel(equation):
                    continue
                info = equation.source_info
                equation.source_info = info.replace(name_stack=info.name_stack.extend(f"~eq{index}.{position}~"))
                before.append((equation, info))
    except (AttributeError, TypeError) as error:
        problem = f"operations cannot be traced to single equations in this JAX: {error}"
    try:
        yield problem
    finally:
        for equation, info in reversed(before):
            equation.source_info = info


def _of_kernels(jaxprs: Sequence[Any]) -> set[int]:
    kernels = [equation for jaxpr in jaxprs for equation in jaxpr.eqns if is_kernel(equation.primitive.name)]
    outer = [body for equation in kernels for body in bodies(equation)]
    inner = (body for each in outer for equation in equations_of(each) for body in bodies(equation))
    return {*map(id, outer), *map(id, inner)}


def _holds_kernel(equation: Any) -> bool:
    inside = (each for body in bodies(equation) for each in equations_of(body))
    return any(is_kernel(each.primitive.name) for each in (equation, *inside))


class EquationNumbers:
    """The equation numbers read from operations' names: `encode` gives three numbers for each operation."""

    def __init__(self) -> None:
        self._found = array("I")

    def taken_out(self, operation: int, path: str) -> str:
        """The path in an operation's name without numbers; the innermost one, which stands last, is kept."""
        found = _NUMBERS.findall(path)
        if not found:
            return path
        self._found.extend((operation, *map(int, found[-1])))
        return _MARK.sub("", path)

    def without(self, text: str) -> str:
        """A text without numbers."""
        return _MARK.sub("", text) if "~eq" in text else text

    def encode(self) -> bytes:
        """The number of an operation, the index of the jaxpr, the index of the equation there."""
        return self._found.tobytes()
