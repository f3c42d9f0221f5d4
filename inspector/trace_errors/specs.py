"""Specs of a shard_map that do not fit: an out_spec without an axis, or too long a one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...parsers.source import Frame
from ..findings.fixes.calls import name_of, shard_map_calls
from ..findings.fixes.edits import Placed, as_operand, axes_text, instead, wrapped
from ..findings.fixes.invariance import CASTS, without_varying
from ..findings.fixes.specs import SPECS
from ..report import Explanation, Fix, SourcePosition, StoryStep
from .failed import PATH, Failed, Function, element, functions_named, maps, results_of

_FUNCTION = re.compile(r"applied to the function '([^']*)'")

LACKS_AXES = re.compile(
    rf"out_specs({PATH}) is (P\(.*?\)) which implies[^{{']*"
    r"(?:\{[^}]*\} and not \{([^}]*)\}|'([^']*)'), but",
    re.DOTALL,
)
"""JAX's message for a spec that lacks only one of the mesh's axes: it quotes the axis."""

TOO_LONG = re.compile(
    rf"out_specs({PATH}) is (P\(.*?\)) which has length (\d+), but .*? has shape (\S+), which has rank (\d+)"
)


def explain_lacking_axes(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """The story of each axis that the out_spec lacks; to reduce over it, to name it, or to gather."""
    function = _FUNCTION.search(failed.said)
    if function is None:
        return None
    path, spec, several, single = said.groups()
    axes = tuple(axis.strip() for axis in (several or single).split(",") if axis.strip())
    number = re.match(r"\[(\d+)\]|$", path)
    stories = [failed.story(function[1], int(number[1] or 0), axis) for axis in axes] if number else []
    steps = [step for story in stories for step in story]
    last = f"it leaves through out_specs{path} = {spec}, which declares it invariant over {', '.join(axes)}"
    return Explanation(
        f"result{path} of {function[1]} varies over {', '.join(axes)}, but its out_spec {spec} says that it does not",
        (*steps, StoryStep(last, _where(failed, function[1], path))),
        tuple(_fixes(failed, function[1], path, axes)),
    )


def explain_too_long(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """An out_spec with more entries than the result has dimensions."""
    function = _FUNCTION.search(failed.said)
    if function is None:
        return None
    path, spec, length, shape, rank = said.groups()
    new = int(length) - int(rank)
    fixes = [
        Fix(
            f"give it {new} dimension{'s' if new > 1 else ''} more, along which the devices' results are concatenated",
            edits,
        )
        for file, found in functions_named(failed, function[1])
        for placed in results_of(file, found, path)
        if (edits := as_operand(placed, f"[{', '.join(['None'] * new)}{', ...' if int(rank) else ''}]"))
    ]
    step = StoryStep(f"result{path} is {shape}, of {rank} dimensions", failed.place)
    return Explanation(
        f"out_specs{path} = {spec} has {length} entries for a result of {rank} dimensions", (step,), tuple(fixes)
    )


def _where(failed: Failed, name: str, path: str) -> SourcePosition:
    """Return the position of the call that failed; for a function that no user code calls, that of its out_spec."""
    if failed.failure.stack:
        return failed.place
    specs = (_out_spec(failed, file, function, path) for file, function in functions_named(failed, name))
    spec = next(filter(None, specs), None)
    return SourcePosition() if spec is None else SourcePosition((Frame(spec[0], "", spec[1].lineno),), "name")


def _fixes(failed: Failed, name: str, path: str, axes: tuple[str, ...]) -> Iterator[Fix]:
    named = axes_text(axes)
    for file, function in functions_named(failed, name):
        lax = failed.lax(file)
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if name_of(call.func) in ("all_gather", *CASTS):
                yield Fix(*without_varying(failed.program, (file, call)))
        for placed in results_of(file, function, path):
            for reduction, words in (
                ("psum", "sum it over {} if it is a partial sum"),
                ("pmean", "average it over {}"),
            ):
                yield Fix(words.format(named), wrapped(placed, f"{lax}{reduction}(", f", {named})"))
        spec = _out_spec(failed, file, function, path)
        if spec is not None:
            edits = instead(spec, _with_axes(spec[1], axes))
            yield Fix(f"name {named} in the out_spec, to concatenate the devices' results", edits)
        for placed in results_of(file, function, path):
            edits = wrapped(placed, f"{lax}all_gather(", f", {named}, tiled=True, to='invarying')")
            yield Fix(f"gather it over {named}, to give every device the full value", edits)


def _out_spec(failed: Failed, file: str, function: Function, path: str) -> Placed | None:
    calls = [call for where, call in shard_map_calls(failed.nodes) if where == file]
    own = [call for call in calls if maps(call, function)]
    for call in own or (calls if len(calls) == 1 else []):
        for keyword in call.keywords:
            if keyword.arg == "out_specs":
                spec = element(keyword.value, path)
                return (file, spec) if isinstance(spec, ast.Call) and name_of(spec.func) in SPECS else None
    return None


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
