"""Sources of the arguments: the command line, the script, or none where none are needed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ...protocol.request import Request, UsageError
from ..subject import meshes_in_context, meshes_in_function, meshes_in_namespace
from . import arg_spec, callables
from .callables import Arguments
from .resolve import Resolved, attribute
from .wrappers import signature_of

MARK = "shardscope_inputs"
"""The attribute that `@shardscope.inputs(…)` sets."""


def find_arguments(request: Request, found: Resolved) -> Arguments:
    """The arguments by the first rule that applies, as `shardscope run --help` lists them.

    Raises:
        UsageError: none applies, or what was named is not there. What the script's own functions raise passes through.
    """
    if request.args:
        return tuple(arg_spec.read_argument(text, _mesh_finder(found)) for text in request.args), {}
    if request.inputs is not None:
        return _evaluate(attribute(request.inputs, found, "--inputs"), found)
    inner, _, _ = callables.unwrap(found.function)
    if (marked := getattr(found.function, MARK, getattr(inner, MARK, None))) is not None:
        return _evaluate(marked, found)
    signature = signature_of(found.function)
    takes_any = signature is None or bool(signature.parameters)
    for name in (f"{found.name}_inputs", *(("inputs",) if takes_any else ())):
        for owner in (found.owner, found.module):
            if (value := getattr(owner, name, None)) is not None:
                return _evaluate(value, found)
    if signature is not None and _binds(signature, (), {}):
        return (), {}
    shown = f"{found.name}{signature}" if signature is not None else found.name
    raise UsageError(
        f"{shown} needs arguments",
        f"define {found.name}_inputs in the script: a tuple of arrays or jax.ShapeDtypeStructs, or a function that"
        f" returns one; or name them with --inputs NAME, or give one --arg 'f32[8,16]' per argument",
    )


def _evaluate(value: Any, found: Resolved) -> Arguments:
    """Call what is a function; read the result as arguments, or as `(args, kwargs)` where that fits the function."""
    if callable(value) and not hasattr(value, "shape"):
        value = value()
    if not isinstance(value, tuple):
        return (value,), {}
    if len(value) == 2 and isinstance(value[0], (tuple, list)) and isinstance(value[1], dict):
        args, kwargs = tuple(value[0]), value[1]
        signature = signature_of(found.function)
        if all(isinstance(name, str) for name in kwargs) and (signature is None or _binds(signature, args, kwargs)):
            return args, kwargs
    return value, {}


def _binds(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _mesh_finder(found: Resolved) -> Callable[[frozenset[str]], Any]:
    """Finds the mesh for the axes that an `--arg` names: the one in force, the function's own, then the script's."""

    def find(axes: frozenset[str]) -> Any:
        namespace = vars(found.module)
        known = [*meshes_in_context(), *meshes_in_function(found.function), *meshes_in_namespace(namespace)]
        for mesh in known:
            if axes <= set(mesh.axis_names):
                return mesh
        listed = " and ".join(sorted({f"({', '.join(mesh.axis_names)})" for mesh in known}))
        named = f"--arg names the {'axes' if len(axes) > 1 else 'axis'} {', '.join(sorted(axes))}"
        raise UsageError(
            f"{named}, but {f'the axes of the mesh are {listed}' if listed else 'no mesh was found'}",
            "a mesh is found where jax.set_mesh set it, in the shard_map, or among the script's globals",
        )

    return find
