"""The origin of a program, as the user wrote it: its function, call, arguments and the mesh in the context."""

from __future__ import annotations

import inspect
import re
from typing import Any

from ...protocol.trace import Place, ProgramArgument
from .. import failures
from ..program.avals import spec_text, type_text
from ..program.meshes import key_of
from ..subject import meshes_in_context
from .causes import short
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
    frame = inspect.currentframe()
    outside = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not failures.is_internal(file) and not failures.is_pythons_own(file):
            place = Place(file, frame.f_lineno)
            if not failures.is_library(file):
                return place
            outside = outside or place
        elif file == "<string>":  # of `python -c`, or of a dataclass
            outside = outside or Place(file, frame.f_lineno)
        frame = frame.f_back
    return outside


def arguments_of(lowering: Lowering) -> tuple[ProgramArgument, ...]:
    """The arguments of a program; none where it is not known what it was lowered from."""
    arguments = lowering.arguments
    jaxpr = arguments.get("closed_jaxpr")
    if jaxpr is None:
        return ()
    given = zip(
        names_of(lowering)[0], jaxpr.in_avals, arguments["in_shardings"], arguments["donated_invars"], strict=True
    )
    return tuple(
        ProgramArgument(
            name,
            type_text(aval),
            spec_text(sharding),
            bool(getattr(aval, "weak_type", False)),
            bool(donated),
            key_of(sharding),
        )
        for name, aval, sharding, donated in given
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
