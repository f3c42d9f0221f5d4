"""Callables of any kind as functions that JAX can trace: partials, bound methods and callable objects unwrapped."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, MethodType, ModuleType
from typing import Any, NamedTuple

import jax
import numpy as np

from ...protocol.request import UsageError
from ...protocol.trace import Value
from .. import failures
from ..program.avals import spec_text, type_text
from ..program.structure import bodies, opened
from ..script_objects import attribute, closed_over, is_a
from . import wrappers
from .paths import argument_path
from .resolve import Resolved
from .wrappers import dynamic_arguments, is_jitted, jax_jit, parameter_names

CONCRETE = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)
"""Raised where Python wants the value of what is traced; the first for integers and booleans, too."""

MAX_REACH = 5
"""Steps from a function to the arrays that it closes over."""

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Traceable(NamedTuple):
    """A traced call: the jitted function with all of its arguments, those that a partial or a method bound included.

    Where a wrapper made other arguments and results of the user's, `known_as` has the paths of arrays in what the user
    passed, by id, and `results` the names of results. `implicit_jit` names the jit that a function without one got.
    """

    traced: Any
    jitted: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    known_as: Mapping[int, list[str]]
    results: list[str] | None = None
    implicit_jit: str | None = None

    def dynamic(self) -> Arguments:
        """The arguments that are traced, in the form in which the compiled function takes them."""
        return dynamic_arguments(self.args, self.kwargs, wrappers.info_of(self.jitted))

    def dynamic_names(self) -> list[str]:
        """For each dynamic positional argument the parameter that it is bound to."""
        names = parameter_names(self.jitted, len(self.args))
        return list(dynamic_arguments(tuple(names), {}, wrappers.info_of(self.jitted))[0])


def trace(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traceable:
    """Trace a call as the call itself would.

    What is jitted is traced as it is, with its own shardings, donation and static arguments; so is what a wrapper jits.
    Only a function without a jit of its own gets one.
    """
    inner, bound_args, bound_kwargs = unwrap(function)
    given = (*bound_args, *args), {**bound_kwargs, **kwargs}
    if is_jitted(inner):
        return _traced(inner, *given)
    if wrappers.is_wrapper(inner):
        found = _traced_in_wrapper(inner, *given)
        if found is not None:
            return found
    found = _with_a_jit(inner, given)
    own = inspect.unwrap(inner, stop=_is_jit) if hasattr(inner, "__wrapped__") else inner
    return trace(own, *given) if _is_jit(own) and _hands_on(found.traced.jaxpr.jaxpr) else found


def has_jit(function: Any) -> bool:
    """Return whether a function has a jit of its own, or a wrapper that jits it."""
    return _is_jit(unwrap(function)[0])


def jit_inside(function: Any) -> Any:
    """The jitted function among those that a function wraps; None where there is none, or it has a jit of its own."""
    inner = inspect.unwrap(function, stop=_is_jit)
    return inner if _is_jit(inner) and not has_jit(function) else None


def _with_a_jit(inner: Any, given: Arguments) -> Traceable:
    fitting = wrappers.fitting_jit(given)
    if fitting is not None:
        name, jit = fitting
        found = _traced_in_wrapper(jit(inner), *given)
        if found is not None:
            return found._replace(implicit_jit=name)
    try:
        return _with_static(inner, given, lambda arg: not _is_data(arg))
    except (*CONCRETE, TypeError):
        if not any(_is_number(arg) for arg in (*given[0], *given[1].values())):
            raise
    # A number may be a size, or how often to do something.
    return _with_static(inner, given, lambda arg: not _is_data(arg) or _is_number(arg))


def _with_static(inner: Any, given: Arguments, is_static: Callable[[Any], bool]) -> Traceable:
    args, kwargs = given
    positions = [index for index, arg in enumerate(args) if is_static(arg)]
    names = [name for name, arg in kwargs.items() if is_static(arg)]
    if not all(map(_is_hashable, (*(args[each] for each in positions), *(kwargs[each] for each in names)))):
        inner = _with_held(inner)
        args = tuple(_Held(arg) if index in positions else arg for index, arg in enumerate(args))
        kwargs = {name: _Held(arg) if name in names else arg for name, arg in kwargs.items()}
    jitted = jax_jit(inner, static_argnums=positions or None, static_argnames=names or None)
    return _traced(jitted, args, kwargs)._replace(implicit_jit="jax.jit")


class _Held:
    """A static argument that has no hash of its own."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


def _with_held(function: Any) -> Any:
    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [arg.value if isinstance(arg, _Held) else arg for arg in args]
        named = {name: arg.value if isinstance(arg, _Held) else arg for name, arg in kwargs.items()}
        return function(*given, **named)

    return call


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_number(argument: Any) -> bool:
    """Return whether it is an integer or a boolean, or consists of some, as a shape does."""
    leaves = jax.tree.leaves(argument)
    return bool(leaves) and all(isinstance(leaf, bool | int) for leaf in leaves)


def _traced(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any], traced: Any = None) -> Traceable:
    return Traceable(jitted.trace(*args, **kwargs) if traced is None else traced, jitted, args, kwargs, {})


def _traced_in_wrapper(wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traceable | None:
    known_as = wrappers.named_leaves(wrapper, args, kwargs)
    inside = wrappers.traced_inside(wrapper, args, kwargs)
    if inside is None:
        return None
    results = wrappers.named_results(wrapper, inside.args, inside.traced.out_info, known_as)
    names = parameter_names(wrapper, len(args))
    by_position = _named_by_position(names, (args, kwargs), (inside.args, inside.kwargs), known_as)
    return _traced(*inside)._replace(known_as=known_as | by_position, results=results)


def _named_by_position(
    names: list[str], given: Arguments, handed: Arguments, known_as: Mapping[int, list[str]]
) -> dict[int, list[str]]:
    """The paths of leaves that are no arrays, such as a count of steps, where the wrapper keeps the order of leaves."""
    leaves, handed_on = jax.tree_util.tree_flatten_with_path(given)[0], jax.tree.leaves(handed)
    pairs = list(zip(leaves, handed_on, strict=False))
    if len(leaves) != len(handed_on) or any(id(own) in known_as and own is not leaf for (_, leaf), own in pairs):
        return {}
    found: dict[int, list[str]] = {}
    for (path, _), own in pairs:
        if id(own) not in known_as:
            found.setdefault(id(own), []).append(argument_path(path, names))
    return found


def sharded_constants(call: Traceable, function: Any) -> tuple[Value, ...]:
    """The sharded arrays among a program's constants, by the names that the function or a static argument has."""
    held = [
        array for array in call.traced.jaxpr.consts if isinstance(array, jax.Array) and not array.is_fully_replicated
    ]
    given = zip(parameter_names(call.jitted, len(call.args)), call.args, strict=False)
    names = _names_of([("", function), *given], {id(array) for array in held}) if held else {}
    return tuple(
        Value(names.get(id(array), f"constant {number}"), type_text(jax.typeof(array)), spec_text(array.sharding))
        for number, array in enumerate(held)
    )


def _names_of(level: list[tuple[str, Any]], wanted: set[int]) -> dict[int, str]:
    """Names of arrays, by id, in the variables of functions, and in those of functions and objects among them."""
    found: dict[int, str] = {}
    for _ in range(MAX_REACH):
        following: list[tuple[str, Any]] = []
        for name, value in level:
            following += _variables_of(name, value)
            if is_a(value, (jax.Array, tuple, list, dict)):
                for path, leaf in jax.tree_util.tree_leaves_with_path(value):
                    if id(leaf) in wanted:
                        found.setdefault(id(leaf), name + jax.tree_util.keystr(path))
        level = list({id(value): (name, value) for name, value in reversed(following)}.values())[::-1]
    return found


def _variables_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    code = attribute(value, "__code__")
    if is_a(value, MethodType):
        yield from (("self", value.__self__), ("", value.__func__))
    elif code is not None:
        used = attribute(value, "__globals__") or {}
        inner = [each for each in code.co_consts if is_a(each, CodeType)]
        names = (each for part in (code, *inner) for each in part.co_names)
        yield from ((each, used[each]) for each in names if each in used)
        yield from closed_over(value).items()
    elif not is_a(value, (type, ModuleType, jax.Array)):
        held = attribute(value, "__dict__")
        yield from ((f"{name}.{each}", inner) for each, inner in (held.items() if is_a(held, dict) else ()))
    yield name, attribute(value, "func") if is_a(value, functools.partial) else attribute(value, "__wrapped__")


def refuse_dead(found: Resolved, place: str, jaxpr: Any) -> None:
    """Refuse a function that returns nothing: jit drops all of its work, and what is left says nothing about it.

    `place` is the script, as it was named. The hint names only steps that can be named: those of the module.

    Raises:
        UsageError: there are no results and no effects.
    """
    if jaxpr.jaxpr.outvars or jaxpr.effects:
        return
    equations = [each for each in jaxpr.jaxpr.eqns if _calls_by_name(each) and _is_users(each)]
    called = dict.fromkeys(str(each.params["name"]) for each in equations)
    by_name = [name for name in called if callable(getattr(found.module, name, None))]
    step = f":{next(iter(called))}" if called and not by_name else ""
    instead = f"name the step that it calls ({', '.join(by_name[:4])}) instead, or " if by_name else ""
    raise UsageError(
        f"{found.name} returns nothing, so jit drops all of its work as dead code: nothing is left to inspect",
        f"{instead}run the script: shardscope {place}{step}",
    )


def refuse_several(found: Resolved, jaxpr: Any) -> None:
    """Refuse a function that leaves nearly all of its work to jitted functions: those are the programs that it runs.

    A transformation of a jitted function is one program.

    Raises:
        UsageError: nine of ten equations are theirs.
    """
    if failures.is_part_of_jax(getattr(attribute(unwrap(found.function)[0], "__code__"), "co_filename", "")):
        return
    called = [each for each in opened(jaxpr).eqns if _calls_by_name(each) and _is_users(each)]
    if sum(map(_size, called)) > 0.9 * sum(map(_size, opened(jaxpr).eqns)):
        raise UsageError(f"{found.name} calls jitted functions, which are programs of their own")


def is_complete(given: Arguments) -> bool:
    """Return whether a function can be called with these arguments: of none only the type is left."""
    return not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(given))


def _is_users(equation: Any) -> bool:
    described = attribute(attribute(opened(equation.params["jaxpr"]), "debug_info"), "func_src_info")
    return described is not None and not failures.is_part_of_jax(str(described).partition(" at ")[2])


def _size(equation: Any) -> int:
    return 1 + sum(_size(inner) for body in bodies(equation) for inner in body.eqns)


def _calls_by_name(equation: Any) -> bool:
    return "jaxpr" in equation.params and "name" in equation.params and equation.primitive.name in ("jit", "pjit")


def _is_jit(function: Any) -> bool:
    return is_jitted(function) or wrappers.is_wrapper(function)


def _hands_on(jaxpr: Any) -> bool:
    """Return whether a program begins with a call of a jitted function with the program's own arguments."""
    call = next(iter(jaxpr.eqns), None)
    return call is not None and "jaxpr" in call.params and list(call.invars) == [*jaxpr.constvars, *jaxpr.invars]


def unwrap(function: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function inside partials and bound methods, and the arguments that they bind."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    while True:
        if isinstance(function, functools.partial) or _is_like_partial(function):
            args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
            function = function.func
        elif isinstance(function, MethodType):
            args = (function.__self__, *args)
            function = function.__func__
        else:
            return function, args, kwargs


def _is_like_partial(function: Any) -> bool:
    return type(function).__name__ == "Partial" and all(
        hasattr(function, name) for name in ("func", "args", "keywords")
    )


def _is_data(argument: Any) -> bool:
    return all(map(_is_array_like, jax.tree.leaves(argument)))


def _is_array_like(leaf: Any) -> bool:
    if isinstance(leaf, (bool, int, float, complex, np.ndarray, np.generic)) or hasattr(leaf, "__jax_array__"):
        return True
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")
