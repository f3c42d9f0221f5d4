"""Reasons for which JAX traces a function again, besides types and shardings of arguments, as text to compare."""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from jax._src import config

from ..program.avals import spec_text
from ..script_objects import closed_over
from .wrapped import dynamic_arguments

MAX_TEXT = 60
"""Characters of a value."""

MAX_STRUCTURE = 4000
"""Characters of a structure of arguments; of a longer one, a digest is kept."""

MAX_DEPTH = 3
"""Functions in closures of functions, in which values are searched for."""

SIMPLE = (bool, int, float, complex, str, bytes, type(None), type, enum.Enum, np.generic, np.dtype)
"""Types of values whose text says all of them."""

JIT_OPTIONS = ("keep_unused", "inline", "backend", "compiler_options_kvs")


def short(value: Any) -> str:
    """The text of a value, or its beginning; its type where the user's own `repr` fails."""
    try:
        text = repr(value)
    except Exception:
        text = object.__repr__(value)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def bound_values(function: Any) -> tuple[str, ...]:
    """The values that a function has from `functools.partial`, its closure and its defaults, by name."""
    return tuple(f"{name}={short(value)}" for name, value in sorted(dict(_bound(function, 0)).items()))


def _bound(function: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if depth == MAX_DEPTH:
        return
    given: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        given = {**{f"args[{at}]": value for at, value in enumerate(function.args)}, **function.keywords, **given}
        function = function.func
    function = getattr(function, "__func__", function)
    if inspect.isfunction(function):
        for name, value in closed_over(function).items():
            if _is_simple(value):
                yield name, value
            elif inspect.isfunction(value) or isinstance(value, functools.partial):
                yield from _bound(value, depth + 1)
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
        yield from ((each.name, each.default) for each in parameters if _is_simple(each.default))
    yield from ((name, value) for name, value in given.items() if _is_simple(value))


def _is_simple(value: Any) -> bool:
    if value is inspect.Parameter.empty:
        return False
    return isinstance(value, SIMPLE) or (isinstance(value, tuple) and all(map(_is_simple, value)))


def structure_of(caller: Mapping[str, Any]) -> str:
    """The structure of the arguments of a call; empty where it is not known."""
    if "args" not in caller:
        return ""
    dynamic = dynamic_arguments(caller["args"], caller.get("kwargs", {}), caller.get("jit_info"))
    try:
        text = str(jax.tree.structure(dynamic)).removeprefix("PyTreeDef(").removesuffix(")")
    except Exception:  # what the user's own nodes hold has no text
        return ""
    return text if len(text) <= MAX_STRUCTURE else hashlib.sha256(text.encode()).hexdigest()


class Settings:
    """The options of JAX that programs depend on, and their values when JAX was imported."""

    def __init__(self) -> None:
        self._before = self._values()

    def _values(self) -> dict[str, Any]:
        states = getattr(config, "config_states", {})
        try:
            known = set(config.trace_context_names())
        except (AttributeError, NotImplementedError):  # JAX 0.10 has it
            known = set(states)
        return {name: state.value for name, state in states.items() if name in known}

    def changed(self) -> tuple[str, ...]:
        """Return the settings that have another value in this thread."""
        values = self._values().items()
        return tuple(f"{name}={short(value)}" for name, value in values if value != self._before.get(name))


def jit_options(jit_info: Any, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The options of `jax.jit` that are not seen in the arguments."""
    given = {name: getattr(jit_info, name, None) for name in JIT_OPTIONS}
    specs = [spec_text(each) for each in arguments.get("out_shardings", ())]
    if any(specs):
        given["out_shardings"] = ", ".join(dict.fromkeys(each or "unspecified" for each in specs))
    return tuple(f"{name.removesuffix('_kvs')}={value}" for name, value in given.items() if value)
