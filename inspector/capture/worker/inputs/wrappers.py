"""Jitted functions, and those that bring a jit of their own: nnx.jit, eqx.filter_jit, named_jit.

A wrapper hands what it makes of its arguments to a jitted function inside of it. That function is traced at the moment
at which the wrapper's own `lower` reaches it, so that the program is the one of a call: with the wrapper's state
updates, static parts, donation and shardings. Touches `lower` and `trace` of the type that `jax.jit` returns, the
functions of `jax._src.pjit` that are put there, and the private attribute in which that type keeps its options.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jax._src import pjit

from ...protocol.events import UPDATED
from .paths import path_text, without_only_indices

jax_jit: Any = getattr(sys.modules.get("jax._src.api"), "jit", jax.jit)
"""JAX's own: a script may have put something else in its place, such as a function that measures."""

UNOPTIMIZED = {"xla_backend_optimization_level": 0}
"""Most of the time to compile for CPUs is LLVM's, and a program that runs twice does not win it back."""


def compiled_quickly(lowered: Any) -> Any:
    """The executable of a lowered program that runs once or twice."""
    return lowered.compile(compiler_options=UNOPTIMIZED if jax.default_backend() == "cpu" else None)


MAX_DEPTH = 24
"""Attributes and items, one in another, through which the arrays of an argument are named."""

_JITTED = type(jax_jit(lambda: None))
_JITS = (("flax.nnx", "Object", "jit"), ("flax.nnx", "Pytree", "jit"), ("equinox", "Module", "filter_jit"))
"""Libraries, the base class of their modules, and their jit."""

_ENTRANCES = ("trace", "lower")


class Inside(NamedTuple):
    """The jitted function inside a wrapper, the arguments that it is given, and what JAX traced with them."""

    jitted: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    traced: Any


class _ReachedError(BaseException):
    """Leaves the wrapper as soon as the function inside is traced; no wrapper may take it for an error of its own."""

    def __init__(self, inside: Inside) -> None:
        self.inside = inside


def is_wrapper(function: Any) -> bool:
    """Return whether a callable lowers itself, and is not JAX's own."""
    is_class = isinstance(function, type)
    return not is_class and not is_jitted(function) and callable(getattr(function, "lower", None))


def traced_inside(wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inside | None:
    """Return what a wrapper jits, traced with the arguments it passes; None if it calls no jitted function.

    What the function raises while it is traced passes through.
    """
    if not all(hasattr(_JITTED, name) for name in _ENTRANCES):
        return None
    originals = {name: getattr(_JITTED, name) for name in _ENTRANCES}

    def entrance(name: str) -> Callable[..., Any]:
        def reached(jitted: Any, *args: Any, **kwargs: Any) -> Any:
            if sys._getframe(1).f_code.co_name == jax.eval_shape.__name__:  # it runs nothing, whatever it traces
                return originals[name](jitted, *args, **kwargs)
            _put(originals)
            raise _ReachedError(Inside(jitted, args, kwargs, jitted.trace(*args, **kwargs)))

        return reached

    _put({name: entrance(name) for name in _ENTRANCES})
    try:
        wrapper.lower(*args, **kwargs)
    except _ReachedError as found:
        return found.inside
    finally:
        _put(originals)
    return None


def _put(entrances: dict[str, Callable[..., Any]]) -> None:
    """Put functions in the place of JAX's, also for what is jitted from then on: each `jax.jit` puts its own there."""
    for name, function in entrances.items():
        setattr(_JITTED, name, function)
        if hasattr(pjit, f"jit_{name}"):
            setattr(pjit, f"jit_{name}", function)


def fitting_jit(arguments: Any) -> tuple[str, Callable[..., Any]] | None:
    """The jit of the library whose objects are among the arguments of a function that has none of its own.

    `jax.jit` takes an nnx module for a constant, and refuses the functions inside an Equinox one.
    """
    leaves = jax.tree.leaves(arguments, is_leaf=_is_object)
    for library, base, jit in _JITS:
        module = sys.modules.get(library)
        kind = getattr(module, base, None)
        if isinstance(kind, type) and any(isinstance(leaf, kind) for leaf in leaves):
            return f"{library.replace('flax.', '')}.{jit}", getattr(module, jit)
    return None


def _is_object(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] not in ("builtins", "collections", "jax", "jaxlib", "numpy")


def signature_of(function: Any) -> inspect.Signature | None:
    """The signature, where Python knows one."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def parameter_names(function: Any, count: int) -> list[str]:
    """A name for each of `count` positional arguments: `x`, or `args[1]` for the rest that `*args` takes."""
    signature = signature_of(function)
    positional: list[str] = []
    for parameter in signature.parameters.values() if signature else ():
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [f"{parameter.name}[{index}]" for index in range(max(0, count - len(positional)))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(parameter.name)
    return (positional + [f"arg{index}" for index in range(len(positional), count)])[:count]


def named_leaves(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, list[str]]:
    """The paths at which each array of a call is found, `model.layers[0].kernel`, by its id, in their order."""
    found: dict[int, list[str]] = {}
    for name, argument in (*zip(parameter_names(function, len(args)), args, strict=True), *kwargs.items()):
        for path, leaf in _arrays(argument, name, set(), 0):
            found.setdefault(id(leaf), []).append(path)
    return found


def _arrays(value: Any, path: str, around: set[int], depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, jax.Array | np.ndarray | jax.ShapeDtypeStruct):
        yield path, value
        return
    if depth == MAX_DEPTH or id(value) in around or isinstance(value, str | bytes | type):
        return
    around = {*around, id(value)}
    for name, item in _parts(value, path):
        yield from _arrays(item, name, around, depth + 1)


def _parts(value: Any, path: str) -> list[tuple[str, Any]]:
    match value:
        case Mapping():
            return [(f"{path}[{key!r}]", item) for key, item in value.items()]
        case tuple() if hasattr(value, "_fields"):
            return [(f"{path}.{name}", item) for name, item in zip(value._fields, value, strict=True)]
        case list() | tuple():
            return [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    for held in ("raw_value", "array"):  # a variable of nnx, a named array of Haliax
        if hasattr(value, held):
            return [(path, getattr(value, held))]
    is_sequence = hasattr(value, "__len__") and hasattr(value, "__iter__")
    if is_sequence and type(value).__module__.startswith("flax.nnx"):
        return [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    return [(f"{path}.{name}", item) for name, item in getattr(value, "__dict__", {}).items()]


_ONLY_STATE = re.compile(r"\.states\[0\]\[0\]\Z")
"""The path of a variable inside of `flax.nnx.extract.NodeStates`."""


def named_results(wrapper: Any, given: Any, results: Any, known_as: Mapping[int, list[str]]) -> list[str]:
    """Return the user's name of each result of the inner function: `result[0]`, or `updated model.up.kernel`.

    `given` are the arguments of the function inside, `results` is the tree of its results. nnx returns (the states of
    its positional arguments, of its keyword arguments, the result), Equinox (a flag, the result's arrays, the rest).
    """
    library = type(wrapper).__module__.partition(".")[0]
    arguments, _ = jax.tree_util.tree_flatten_with_path(given)
    paths = {path_text(path): known_as.get(id(leaf), [])[:1] for path, leaf in arguments}
    is_triple = isinstance(results, tuple) and len(results) == 3
    names = []
    for path, _ in jax.tree_util.tree_flatten_with_path(results)[0]:
        side, rest = getattr(path[0], "idx", None) if path else None, path_text(path[1:])
        if is_triple and library == "flax" and side == 0 and paths.get(rest):
            names.append(UPDATED + paths[rest][0])
        elif is_triple and (library, side) in (("flax", 2), ("equinox", 1)):
            names.append(f"result{rest}")
        elif is_triple and (library, side) == ("equinox", 0):
            is_flag = len(path) == 1  # filter_pmap has a list of the results mapped over each axis there
            names.append("flag of eqx.filter_jit" if is_flag else f"result{path_text(path[2:])}")
        else:
            names.append(f"result{path_text(path)}")
    return without_only_indices(_without_states(names) if library == "flax" else names)


def _without_states(names: list[str]) -> list[str]:
    """Results of nnx; a variable, which is handed on as the only state of a node of its own, by its own name."""
    plain = [_ONLY_STATE.sub("", name) for name in names]
    return [short if plain.count(short) == 1 else name for name, short in zip(names, plain, strict=True)]


ATTRIBUTE = "_jit_info"
FIELDS = ("static_argnums", "static_argnames", "in_shardings_treedef", "in_shardings_leaves")


def probe() -> str | None:
    """Return what cannot be known with this version of JAX because an attribute has moved."""
    info = info_of(jax_jit(lambda: None))
    missing = [name for name in FIELDS if not hasattr(info, name)]
    if not missing:
        return None
    moved = f"{ATTRIBUTE}.{missing[0]}"
    return f"JAX {jax.__version__} keeps no {moved}: jit's static arguments and shardings are not known"


def is_jitted(function: Any) -> bool:
    """Return whether it is what `jax.jit` returns."""
    return isinstance(function, type(jax_jit(lambda: None)))


def info_of(jitted: Any) -> Any:
    """Return what JAX keeps of the options of a jit; None where it does not."""
    return getattr(jitted, ATTRIBUTE, None)


def dynamic_arguments(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], jit_info: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that are traced: not those that are static."""
    positions = frozenset(getattr(jit_info, "static_argnums", None) or ())
    names = frozenset(getattr(jit_info, "static_argnames", None) or ())
    dynamic = (arg for index, arg in enumerate(args) if index not in positions and index - len(args) not in positions)
    return tuple(dynamic), {name: value for name, value in kwargs.items() if name not in names}


def requested(jitted: Any, what: str) -> tuple[Any, list[Any]] | None:
    """`in_shardings`, or the layouts `in_layouts` in them, as the structure of a tree prefix and its leaves, as given.

    None for nothing. The tree itself is not made: what a class of the script makes of its fields may not take shardings
    in their places.
    """
    info = info_of(jitted)
    tree = getattr(info, f"{what}_treedef", None)
    leaves = getattr(info, f"{what}_leaves", None)
    if tree is None or leaves is None:
        return None
    return tree, list(leaves)
