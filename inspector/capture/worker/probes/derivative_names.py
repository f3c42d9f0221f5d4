"""Names of a derivative: of the function that is differentiated, of its arguments, and the line that takes it."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import failures
from ..inputs import callables


class Named(NamedTuple):
    """A derivative that a frame of JAX takes, in the user's words."""

    function: str
    arguments: list[str]
    file: str | None
    line: int


def named(function: Any, caller: Any, count: int) -> Named:
    """The names of a derivative of so many arguments, which `caller`, a frame of `jax.grad`, takes."""
    return Named(_name(function, caller), _names(caller, count), *_place(caller))


def _names(caller: Any, count: int) -> list[str]:
    """Return the names of the arguments in the function that is differentiated."""
    function, argnums = caller.f_locals.get("fun"), caller.f_locals.get("argnums")
    code = getattr(function, "__code__", None)
    is_wrapper = code is not None and failures.is_library(code.co_filename)  # its own names mean nothing to the user
    is_known = callable(function) and not is_wrapper
    names = callables.parameter_names(callables.signature_of(function), 64) if is_known else []
    numbers = (argnums,) if isinstance(argnums, int) else argnums or range(count)
    known = [names[number] if 0 <= number < len(names) else f"argument {number}" for number in numbers]
    return known if len(known) == count else [f"argument {number}" for number in range(count)]


def _name(function: Any, caller: Any) -> str:
    return str(getattr(caller.f_locals.get("fun", function), "__name__", "the function"))


def _place(caller: Any) -> tuple[str | None, int]:
    """The user's line that takes the derivative, or that of a library; else where the function begins."""
    frame, inside = caller, None
    while frame is not None:
        file = frame.f_code.co_filename
        if not failures.is_internal(file) and not failures.is_pythons_own(file):
            if not failures.is_library(file):
                return file, frame.f_lineno
            inside = inside or (file, frame.f_lineno)
        frame = frame.f_back
    if inside is not None:
        return inside
    code = getattr(caller.f_locals.get("fun"), "__code__", None)
    return (None, 0) if code is None else (code.co_filename, code.co_firstlineno)
