"""The call of a function as the user's script makes it: the function, and what it is given."""

from __future__ import annotations

import functools
import gc
import inspect
import sys
from collections.abc import Mapping
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, NamedTuple

import jax
from jax._src import core

from .. import failures
from ..script_objects import attribute, variable
from ..tracing.lowering import miss_of
from ..tracing.wrapped import wrapper_on_stack
from .wrappers import is_jitted

MAX_DEPTH = 200
"""Frames in which a shard_map around a function is searched for."""

MAPPING = ("jax/_src/shard_map.py", "jax/_src/pmap.py")
"""Modules in which the function `wrapped` is a mapped function (JAX 0.7 to 0.12)."""

TRANSFORMING = ("grad_f", "grad_f_aux", "value_and_grad_f", "vmap_f", "jacfun", "batched_fun")
"""Functions in `jax/_src/api.py` that `grad`, `vmap` and the like return (JAX 0.7 to 0.12)."""


class Call(NamedTuple):
    """A call. `function` is what the user called: a jitted function, or the wrapper that a library puts around one."""

    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def is_traced(self) -> bool:
        """True if an argument is one of JAX's tracers, or the call is made while JAX traces."""
        return not core.trace_state_clean() or self.has_tracers

    @property
    def has_tracers(self) -> bool:
        """True if an argument is one of JAX's tracers."""
        return any(isinstance(leaf, core.Tracer) for leaf in self._leaves())

    @property
    def is_mapped(self) -> bool:
        """True if an argument is the part of a device, inside of a shard_map."""
        avals = [leaf.aval for leaf in self._leaves() if isinstance(leaf, core.Tracer)]
        return any(getattr(aval, "vma", None) or _is_manual(aval) for aval in avals)

    def with_types(self) -> Call:
        """The same with types in the places of tracers."""
        args, kwargs = jax.tree.map(_type_of, (self.args, dict(self.kwargs)))
        return self._replace(args=args, kwargs=kwargs)

    def _leaves(self) -> list[Any]:
        return list(jax.tree.leaves((self.args, dict(self.kwargs))))


def _is_manual(aval: Any) -> bool:
    kinds = getattr(getattr(getattr(aval, "sharding", None), "mesh", None), "axis_types", None) or ()
    return any(getattr(kind, "name", "") == "Manual" for kind in kinds)


def _type_of(leaf: Any) -> Any:
    if not isinstance(leaf, core.Tracer):
        return leaf
    primal = getattr(leaf, "primal", None)
    if primal is not None:
        return _type_of(primal)
    aval = leaf.aval
    sharding = getattr(aval, "sharding", None)
    is_explicit = sharding is not None and any(part is not None for part in getattr(sharding, "spec", ()))
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding if is_explicit else None)


def call_being_traced(function: Any, args: tuple[Any, ...], kwargs: Any, frame: FrameType | None) -> Call | None:
    """The call for which JAX traces a function: that of a library's wrapper where one is on the stack."""
    wrapper = wrapper_on_stack(frame)
    if wrapper is not None:
        return Call(*wrapper)
    found = jitted(function)
    return None if found is None else Call(found, args, kwargs)


def jitted(function: Any) -> Any:
    """The jitted function of a function, which the frames of a call do not have."""
    module = sys.modules.get(getattr(function, "__module__", ""))
    known = variable(module, getattr(function, "__name__", ""))  # what a fork has imported has no referrers
    if is_jitted(known) and getattr(known, "__wrapped__", None) is function:
        return known
    return next((each for each in gc.get_referrers(function) if is_jitted(each)), None)


def call_of(frame: FrameType) -> Call | None:
    """The call of the function that runs in a frame, or of the shard_map around it; None where Python has lost it."""
    mapped = _shard_map_around(frame)
    if mapped is not None:
        return mapped
    code, given = frame.f_code, frame.f_locals
    function = _function_of(code)
    if function is None:
        return None
    count = code.co_argcount
    args = tuple(given[name] for name in code.co_varnames[:count])
    kwargs = {name: given[name] for name in code.co_varnames[count : count + code.co_kwonlyargcount]}
    rest = code.co_varnames[count + code.co_kwonlyargcount :]
    if code.co_flags & inspect.CO_VARARGS:
        args, rest = (*args, *given[rest[0]]), rest[1:]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kwargs |= given[rest[0]]
    if args and count and code.co_varnames[0] == "self":
        return Call(MethodType(function, args[0]), args[1:], kwargs)
    return Call(function, args, kwargs)


def _function_of(code: CodeType) -> FunctionType | None:
    found = [each for each in gc.get_referrers(code) if isinstance(each, FunctionType)]
    return found[-1] if found else None


def _shard_map_around(frame: FrameType) -> Call | None:
    around = _mapping_frame(frame.f_back)
    if around is None or not around.f_code.co_filename.endswith(MAPPING[0]):
        return None
    if getattr(inspect.unwrap(around.f_locals.get("f")), "__code__", None) is not frame.f_code:  # type: ignore[arg-type]
        return None
    return mapped_call(around)


def mapped_call(frame: FrameType | None) -> Call | None:
    """The call of a shard_map, or a pmap, that JAX is carrying out."""
    around = _mapping_frame(frame)
    return None if around is None else _call_in(around)


def transformed_call(frame: FrameType | None) -> Call | None:
    """The call of what `grad` or `vmap` made of a function, the outermost one, which JAX carries out outside of jit."""
    around = None
    for each in failures.outwards(frame, MAX_DEPTH):
        if each.f_code.co_filename.endswith("jax/_src/api.py") and each.f_code.co_name in TRANSFORMING:
            around = each
    if around is None or miss_of(around) is not None:
        return None
    call, given = _call_in(around), around.f_locals
    inner: Any = given.get("fun") or getattr(given.get("value_and_grad_f"), "__wrapped__", None)
    if call is None or inner is None:
        return None
    named = _with_names_of(inner, call.function)
    named.__signature__ = inspect.signature(inner)  # type: ignore[attr-defined]
    del named.__wrapped__  # type: ignore[attr-defined]  # it is what is captured, not the function in it
    return call._replace(function=named)


def _call_in(frame: FrameType) -> Call | None:
    code, given = frame.f_code, frame.f_locals
    for each in gc.get_referrers(code):
        cells = getattr(each, "__closure__", None) or ()
        held = dict(zip(code.co_freevars, cells, strict=False))
        if isinstance(each, FunctionType) and all(held[name].cell_contents is given.get(name) for name in held):
            # The function around a mapped one has the user's names.
            function = _with_names_of(given["f"], each) if "f" in held else each
            return Call(function, given["args"], given.get("kwargs") or {})
    return None


def _with_names_of(inner: Any, function: FunctionType) -> FunctionType:
    parts = (function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    named = FunctionType(*parts)
    functools.update_wrapper(named, inner, updated=())
    return named


def _mapping_frame(frame: FrameType | None) -> FrameType | None:
    """The frame of JAX's in which a mapped function is called, with nothing but JAX's own between."""
    for each in failures.outwards(frame, MAX_DEPTH):
        if not failures.is_internal(each.f_code.co_filename):
            return None
        if each.f_code.co_filename.endswith(MAPPING) and each.f_code.co_name == "wrapped":
            return each
    return None


def is_own_of_jax(function: Any) -> bool:
    """Return whether a function that is traced is one of JAX itself: an operation outside of jit."""
    return failures.is_part_of_jax(getattr(getattr(_unwrapped(function), "__code__", None), "co_filename", ""))


def names_of(function: Any) -> tuple[str, str]:
    """The name and the qualified name of what is inside of a function's wrappers, partials and jits."""
    inner = _unwrapped(function)
    inner = getattr(inner, "func", inner)
    return str(attribute(inner, "__name__") or ""), str(attribute(inner, "__qualname__") or "")


def module_of(function: Any) -> Any:
    """The module of the user's in which a function is defined; that of the script where it is not known."""
    module = sys.modules.get(str(attribute(_unwrapped(function), "__module__")))
    is_users = failures.is_users(str(variable(module, "__file__") or "<string>"))
    return module if is_users else sys.modules["__main__"]


def _unwrapped(function: Any) -> Any:
    try:
        return inspect.unwrap(function)
    except ValueError:  # wrappers in a circle
        return function
