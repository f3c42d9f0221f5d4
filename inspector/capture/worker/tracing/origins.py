"""The origin of a program, as the user wrote it: its function, call, arguments and the mesh in the context.

And reasons for which JAX traces a function again, besides types and shardings of arguments, as text to compare.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from jax._src import config

from ...protocol.trace import Place, Value
from .. import failures
from ..inputs.wrappers import dynamic_arguments
from ..program.avals import spec_text, value_of
from ..script_objects import closed_over
from ..subject import meshes_in_context
from .lowering import Lowering
from .wrapped import place_of


def names_of(lowering: Lowering) -> tuple[list[str], list[str]]:
    """Return the user's names of the arguments and results."""
    jaxpr, wrapped = lowering.arguments["closed_jaxpr"], lowering.wrapped
    info = getattr(jaxpr.jaxpr, "debug_info", None)
    inputs, outputs = len(jaxpr.in_avals), len(jaxpr.out_avals)
    names = list(getattr(info, "arg_names", None) or ())
    paths = [str(path or "") for path in getattr(info, "result_paths", None) or ()]
    names = [str(name or "") for name in names] if len(names) == inputs else [""] * inputs
    paths = paths if len(paths) == outputs else [""] * outputs
    if wrapped is not None and len(wrapped.arguments) == inputs:
        names = [described or name for described, name in zip(wrapped.arguments, names, strict=True)]
    if wrapped is not None and len(wrapped.results) == outputs:
        paths = wrapped.results
    return (
        [name or f"args[{index}]" for index, name in enumerate(names)],
        [path or f"result[{index}]" for index, path in enumerate(paths)],
    )


def source_of(lowering: Lowering) -> Place | None:
    """Return where the user's function is written, or JAX's description of it: `step at /path/train.py:14`."""
    if lowering.wrapped is not None and lowering.wrapped.source is not None:
        return lowering.wrapped.source
    jaxpr = lowering.arguments.get("closed_jaxpr")
    described = str(getattr(getattr(getattr(jaxpr, "jaxpr", None), "debug_info", None), "func_src_info", None) or "")
    match = re.search(r" at (.+):(\d+)$", described)
    return Place(match[1], int(match[2])) if match else place_of(lowering.caller.get("fun"))


def call_on_stack() -> Place | None:
    """The user's line that made JAX compile: the innermost that is of no library, else the innermost not of JAX."""
    found = failures.users_call(inspect.currentframe())
    return None if found is None else Place(*found)


def values_of(lowering: Lowering) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """The arguments and results of a program; none where it is not known what it was lowered from."""
    arguments = lowering.arguments
    jaxpr = arguments.get("closed_jaxpr")
    if jaxpr is None:
        return (), ()
    names, paths = names_of(lowering)
    given = zip(names, jaxpr.in_avals, arguments["in_shardings"], arguments["donated_invars"], strict=True)
    return (
        tuple(value_of(name, aval, sharding, donated=bool(donated)) for name, aval, sharding, donated in given),
        tuple(map(value_of, paths, jaxpr.out_avals, arguments["out_shardings"])),
    )


def static_arguments_of(caller: dict[str, Any]) -> tuple[str, ...]:
    """The static arguments of the call, by name, as text."""
    info, function = caller.get("jit_info"), caller.get("fun")
    positions = [*(getattr(info, "static_argnums", None) or ())]
    names = set(getattr(info, "static_argnames", None) or ())
    args, kwargs = caller.get("args", ()), caller.get("kwargs", {})
    try:
        parameters = list(inspect.signature(function).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        parameters = []
    named = {
        parameters[at] if 0 <= at < len(parameters) else f"args[{at}]": args[at]
        for at in positions
        if -len(args) <= at < len(args)
    }
    named |= {name: value for name, value in kwargs.items() if name in names}
    return tuple(f"{name}={short(value)}" for name, value in named.items())


def context_meshes(arguments: dict[str, Any]) -> list[Any]:
    """The meshes in the context in which a program is lowered."""
    mesh = arguments.get("context_mesh")
    return [*([mesh] if getattr(mesh, "axis_names", ()) else []), *meshes_in_context()]


def context_axes(arguments: dict[str, Any]) -> tuple[str, ...]:
    """The axes of the first of them, with their sizes."""
    mesh = next(iter(context_meshes(arguments)), None)
    return tuple(f"{name}={mesh.shape[name]}" for name in mesh.axis_names) if mesh is not None else ()


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
