"""Whatever one may call, as something that JAX can trace: partials, bound methods and callable objects unwrapped."""

from __future__ import annotations

import functools
import inspect
from types import MethodType
from typing import Any, NamedTuple

import jax
import numpy as np

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Traceable(NamedTuple):
    """A jitted function with all of its arguments, those that a partial or a method had bound included."""

    jitted: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    signature: inspect.Signature | None
    static_positions: frozenset[int]
    static_names: frozenset[str]

    def dynamic(self) -> Arguments:
        """The arguments that are traced, in the form in which the compiled function takes them."""
        args = tuple(arg for index, arg in enumerate(self.args) if index not in self.static_positions)
        return args, {name: value for name, value in self.kwargs.items() if name not in self.static_names}

    def dynamic_names(self) -> list[str]:
        """For each dynamic positional argument the parameter that it is bound to."""
        names = parameter_names(self.signature, len(self.args))
        return [name for index, name in enumerate(names) if index not in self.static_positions]


def traceable(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traceable:
    """Prepare a call. What is jitted is traced as it is, with its own shardings, donation and static arguments."""
    inner, bound_args, bound_kwargs = unwrap(function)
    if is_jitted(inner):
        args, kwargs = (*bound_args, *args), {**bound_kwargs, **kwargs}
        jitted = inner
        positions, names = static_arguments(inner)
    else:
        inner = function
        positions = [index for index, arg in enumerate(args) if not _is_data(arg)]
        names = [name for name, arg in kwargs.items() if not _is_data(arg)]
        jitted = jax.jit(function, static_argnums=positions or None, static_argnames=names or None)
    return Traceable(
        jitted,
        args,
        kwargs,
        signature_of(inner),
        frozenset(position + len(args) if position < 0 else position for position in positions),
        frozenset(names),
    )


def unwrap(function: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function inside partials and bound methods, and the arguments that they bind."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    while True:
        if isinstance(function, functools.partial):
            args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
            function = function.func
        elif isinstance(function, MethodType):
            args = (function.__self__, *args)
            function = function.__func__
        else:
            return function, args, kwargs


def is_jitted(function: Any) -> bool:
    """Whether it is what `jax.jit` returns."""
    return isinstance(function, type(jax.jit(lambda: None)))


def signature_of(function: Any) -> inspect.Signature | None:
    """The signature, where Python knows one."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def parameter_names(signature: inspect.Signature | None, count: int) -> list[str]:
    """A name for each of `count` positional arguments: `x`, or `args[1]` for the rest that `*args` takes."""
    positional: list[str] = []
    for parameter in signature.parameters.values() if signature else ():
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [f"{parameter.name}[{index}]" for index in range(max(0, count - len(positional)))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(parameter.name)
    return (positional + [f"arg{index}" for index in range(len(positional), count)])[:count]


def _is_data(argument: Any) -> bool:
    return all(map(_is_array_like, jax.tree.leaves(argument)))


def _is_array_like(leaf: Any) -> bool:
    if isinstance(leaf, (bool, int, float, complex, np.ndarray, np.generic)) or hasattr(leaf, "__jax_array__"):
        return True
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


ATTRIBUTE = "_jit_info"
FIELDS = ("static_argnums", "static_argnames", "in_shardings_treedef", "in_shardings_leaves")


def probe() -> str | None:
    """What cannot be known with this JAX, if its attribute has moved."""
    info = getattr(jax.jit(lambda: None), ATTRIBUTE, None)
    missing = [name for name in FIELDS if not hasattr(info, name)]
    if not missing:
        return None
    moved = f"{ATTRIBUTE}.{missing[0]}"
    return f"JAX {jax.__version__} keeps no {moved}: jit's static arguments and shardings are not known"


def static_arguments(jitted: Any) -> tuple[list[int], list[str]]:
    """Positions and names of the static arguments; none where JAX does not tell."""
    info = getattr(jitted, ATTRIBUTE, None)
    return list(getattr(info, "static_argnums", None) or ()), list(getattr(info, "static_argnames", None) or ())


def asked_shardings(jitted: Any, side: str) -> Any:
    """`in_shardings` or `out_shardings` as given, a tree prefix with None where nothing was said; None for nothing."""
    info = getattr(jitted, ATTRIBUTE, None)
    tree = getattr(info, f"{side}_shardings_treedef", None)
    leaves = getattr(info, f"{side}_shardings_leaves", None)
    if tree is None or leaves is None:
        return None
    return jax.tree.unflatten(tree, leaves)
