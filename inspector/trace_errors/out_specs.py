"""A value that varies over an axis leaves a shard_map through an out_spec without it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...parsers.source import Frame
from ..findings.fixes.calls import name_of
from ..findings.fixes.edits import Placed, instead, wrapped
from ..ir.program import Program
from ..report import Explanation, Fix, SourcePosition, StoryStep
from .failed import Failed
from .functions import Function, element, functions_named, place_of, results_of, shard_map_calls

SPECS = ("P", "PartitionSpec")

FUNCTION = re.compile(r"applied to the function '([^']*)'")

_SAYS = re.compile(
    r"out_specs((?:\[\d+\])*) is (P\(.*?\)) which implies[^{']*"
    r"(?:\{[^}]*\} and not \{([^}]*)\}|'([^']*)'), but",
    re.DOTALL,
)
"""Where the spec lacks only one of the mesh's axes, JAX says it in other words, and quotes the axis."""


def explain(failed: Failed) -> Explanation | None:
    """The story of each axis that the out_spec lacks; to reduce over it, to name it, or to gather."""
    function, said = FUNCTION.search(failed.said), list(_SAYS.finditer(failed.said))
    if function is None or not said:
        return None
    path, spec, several, single = said[0].groups()
    missing = several or single
    axes = tuple(axis.strip() for axis in missing.split(",") if axis.strip())
    numbers = re.findall(r"\d+", path)
    steps = [step for axis in axes for step in failed.story(function[1], int(numbers[0]) if numbers else 0, axis)]
    last = f"it leaves through out_specs{path} = {spec}, which says that it is the same along {', '.join(axes)}"
    return Explanation(
        f"result{path} of {function[1]} varies over {', '.join(axes)}, and its out_spec {spec} says that it does not",
        (*steps, StoryStep(last, _where(failed, function[1], path))),
        tuple(_fixes(failed, function[1], path, axes)),
    )


def _where(failed: Failed, name: str, path: str) -> SourcePosition:
    """Where the call failed; of a function that is called from no code of the user's, the out_spec."""
    if failed.failure.stack:
        return place_of(failed.failure)
    specs = (
        _out_spec(failed.program, file, function, path) for file, function in functions_named(failed.program, name)
    )
    spec = next(filter(None, specs), None)
    return SourcePosition() if spec is None else SourcePosition((Frame(spec[0], "", spec[1].lineno),), "name")


def _fixes(failed: Failed, name: str, path: str, axes: tuple[str, ...]) -> Iterator[Fix]:
    named = repr(axes[0]) if len(axes) == 1 else repr(axes)
    for file, function in functions_named(failed.program, name):
        lax = failed.lax(file)
        for placed in results_of(file, function, path):
            edits = wrapped(placed, f"{lax}psum(", f", {named})")
            yield Fix(f"add it up over {named}, if it is a part of a sum ({lax}pmean for a mean)", edits)
        spec = _out_spec(failed.program, file, function, path)
        if spec is not None:
            edits = instead(spec, _with_axes(spec[1], axes))
            yield Fix(f"name {named} in the out_spec, if the results are to lie side by side", edits)
        for placed in results_of(file, function, path):
            edits = wrapped(placed, f"{lax}all_gather(", f", {named}, tiled=True, to='invarying')")
            yield Fix(f"gather it over {named}, if every device is to have all of it", edits)


def _out_spec(program: Program, file: str, function: Function, path: str) -> Placed | None:
    """The out_spec of a function, where its shard_map spells it out."""
    calls = [call for where, call in shard_map_calls(program) if where == file]
    own = [call for call in calls if call in getattr(function, "decorator_list", ()) or _maps(call, function)]
    for call in own or (calls if len(calls) == 1 else []):
        for keyword in call.keywords:
            if keyword.arg == "out_specs":
                spec = element(keyword.value, path)
                return (file, spec) if isinstance(spec, ast.Call) and name_of(spec) in SPECS else None
    return None


def _maps(call: ast.Call, function: Function) -> bool:
    return any(
        argument is function or (isinstance(argument, ast.Name) and argument.id == getattr(function, "name", None))
        for argument in call.args
    )


def _with_axes(spec: ast.expr, axes: tuple[str, ...]) -> str:
    assert isinstance(spec, ast.Call)
    entries = [ast.unparse(entry) for entry in spec.args] or ["None"]
    first = spec.args[0] if spec.args else ast.Constant(None)
    names = list(map(repr, axes))
    if isinstance(first, ast.Tuple):
        names = [*map(ast.unparse, first.elts), *names]
    elif not (isinstance(first, ast.Constant) and first.value is None):
        names = [ast.unparse(first), *names]
    entries[0] = names[0] if len(names) == 1 else f"({', '.join(names)})"
    return f"{ast.unparse(spec.func)}({', '.join(entries)})"
