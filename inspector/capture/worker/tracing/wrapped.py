"""The user's function around the one that JAX was given: what `nnx.jit` and `eqx.filter_jit` call it with, by frames.

The wrapper is on the stack when the function inside it is lowered. Names are those that `shardscope run` gives.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any, NamedTuple

import jax

from ...protocol.trace import Place
from .. import failures
from ..inputs import wrappers
from ..inputs.paths import argument_path, has_bare_names, result_path, with_variables
from ..inputs.wrappers import dynamic_arguments, parameter_names
from ..script_objects import closed_over

MAX_CLOSURES = 4
"""Functions of JAX's own, one in the closure of the other, around the user's."""

MAX_DEPTH = 60
"""Frames in which a wrapper is searched for."""

UNNAMED = "<unnamed function>"
"""The name that JAX gives to a function without one, such as a partial that a library wraps (JAX 0.7 to 0.12)."""

PMAP = "jax/_src/pmap.py"
FLAT = ("dyn_args_flat", "args_flat")
"""The module of `pmap`, and its names for the arrays of a call, or of an ahead-of-time lowering (JAX 0.8 to 0.12)."""


class Wrapped(NamedTuple):
    """Names of the arguments and results of the function inside, and where the user's function is defined.

    `name` is what the program is called, where JAX calls it otherwise.
    """

    arguments: list[str]
    results: list[str]
    source: Place | None
    name: str = ""


def find_wrapped(frame: FrameType | None, caller: Mapping[str, Any]) -> Wrapped | None:
    """The call of a wrapper that is on the stack; None where the user calls the jitted function itself."""
    if failures.is_internal(getattr(getattr(caller.get("fun"), "__code__", None), "co_filename", "")):
        return _mapped(caller["fun"], frame)
    wrapper = wrapper_on_stack(frame)
    return _with_better_names(caller) if wrapper is None else _wrapped(*wrapper, caller)


def wrapper_on_stack(frame: FrameType | None) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
    """The wrapper that a library puts around a jitted function, with the user's arguments; None without one."""
    for each in failures.outwards(frame, MAX_DEPTH):
        file = each.f_code.co_filename
        if not failures.is_internal(file):
            if not failures.is_library(file):
                return None
            names = each.f_locals
            found = next((value for value in names.values() if wrappers.is_wrapper(value)), None)
            if found is not None and isinstance(names.get("args"), tuple):
                return found, names["args"], dict(names.get("kwargs") or {})
    return None


def _mapped(function: Any, frame: FrameType | None) -> Wrapped | None:
    """The user's function in the one that `pmap` jits, which has it in a closure, with the name that JAX notes."""
    for _ in range(MAX_CLOSURES):
        inside = list(closed_over(function).values())
        for each in inside:
            info = getattr(each, "debug_info", None)
            match = re.fullmatch(r"(.+) at (.+):(\d+)", str(getattr(info, "func_src_info", "")))
            if match is not None:
                name, file, line = match.groups()
                names = _mapped_arguments(getattr(each, "f", None), frame) or list(
                    getattr(info, "arg_names", None) or ()
                )
                return Wrapped(names, [], Place(file, int(line)), name)
        function = next((each for each in inside if inspect.isfunction(each)), None)
    return None


def _mapped_arguments(function: Any, frame: FrameType | None) -> list[str]:
    """Return the user's name of each array given to a mapped function, from the frame of the call; none without one."""
    for each in failures.outwards(frame, MAX_DEPTH):
        given = each.f_locals
        flat = next((given[name] for name in FLAT if name in given), None)
        if each.f_code.co_filename.endswith(PMAP) and flat is not None:
            known_as = wrappers.named_leaves(function, given["args"], given["kwargs"])
            return [known_as.get(id(leaf), [""])[0] for leaf in flat]
    return []


def _with_better_names(caller: Mapping[str, Any]) -> Wrapped | None:
    """The user's call of a jitted function, where JAX runs the names in paths together, or Keras knows its lists.

    None where JAX's names are as good.
    """
    args, info = caller.get("args", ()), caller.get("jit_info")
    try:
        given = jax.tree_util.tree_flatten_with_path(dynamic_arguments(args, caller.get("kwargs", {}), info))[0]
        is_named_by_jax = not has_bare_names(path for path, _ in given)
        if is_named_by_jax and "keras" not in sys.modules:
            return None
        tree = caller["p"].out_tree
        results = jax.tree_util.tree_flatten_with_path(tree.unflatten(range(tree.num_leaves)))[0]
    except Exception:  # of a class of the script, or as JAX has it: the names are JAX's
        return None
    named = tuple(parameter_names(caller.get("fun"), len(args)))
    names = list(dynamic_arguments(named, {}, info)[0])
    before = [argument_path(path, names) for path, _ in given], [result_path(path) for path, _ in results]
    after = with_variables(
        caller.get("fun"), before[0], [leaf for _, leaf in given], before[1], _results_of(caller, tree.num_leaves)
    )
    return None if is_named_by_jax and after == before else Wrapped(*after, None)


def _results_of(caller: Mapping[str, Any], count: int) -> list[Any]:
    """The types of the results, or as many values without one."""
    found = list(getattr(getattr(caller.get("p"), "params", {}).get("jaxpr"), "out_avals", ()))
    return found if len(found) == count else [None] * count


def _wrapped(wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any], caller: Mapping[str, Any]) -> Wrapped:
    known_as = wrappers.named_leaves(wrapper, args, kwargs)
    dynamic = dynamic_arguments(caller.get("args", ()), caller.get("kwargs", {}), caller.get("jit_info"))
    names = [(known_as.get(id(leaf)) or [""])[0] for leaf in jax.tree.leaves(dynamic)]
    tree = getattr(caller.get("p"), "out_tree", None)
    results: list[str] = []
    if tree is not None:
        results = wrappers.named_results(wrapper, dynamic[0], tree.unflatten(range(tree.num_leaves)), known_as)
    is_named = getattr(caller.get("fun"), "__name__", UNNAMED) != UNNAMED
    return Wrapped(names, results, place_of(wrapper), "" if is_named else getattr(_innermost(wrapper), "__name__", ""))


def place_of(function: Any) -> Place | None:
    """Return where a function, or an object's `__call__`, is defined; through wrappers and partials."""
    function = _innermost(function)
    if function is None:
        return None
    own: Any = getattr(function, "__init__", None) if isinstance(function, type) else function
    if not hasattr(own, "__code__"):
        own = inspect.getattr_static(type(function), "__call__", None)
    code = getattr(own, "__code__", None)
    return None if code is None or code.co_filename == "<string>" else Place(code.co_filename, code.co_firstlineno)


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial) or hasattr(function, "__wrapped__"):
        function = function.func if isinstance(function, functools.partial) else _unwrapped(function)
    return function


def _unwrapped(function: Any) -> Any:
    try:
        return inspect.unwrap(function, stop=lambda each: isinstance(each, functools.partial))
    except ValueError:
        return None
