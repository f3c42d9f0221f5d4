"""Arrays that the body of a shard_map takes from outside, where JAX wants them as arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.fixes.calls import binds, shard_map_calls
from ..findings.fixes.edits import Edits, extent, instead, together
from ..report import Edit, StoryStep
from .candidates import Candidate, Reason
from .functions import Function, maps
from .problem import ARRAYS, Argument, Problem

CLOSED = re.compile(r"Closing over inputs to shard_map where the input is sharded on `Explicit` axes")


def explain_closed_over(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain which array it is, and pass it as the last argument."""
    names = {node.id for _, top in problem.expressions[:1] for node in ast.walk(top) if isinstance(node, ast.Name)}
    arrays = [each for each in problem.arguments if each.kind in ARRAYS and each.name in names]
    bodies = list(_bodies(problem))
    outside = [each for each in arrays if not any(binds(body, each.name) for _, body, _ in bodies)]
    named = outside[0].name if outside else ""
    candidates = []
    for array in outside:
        for file, body, call in bodies:
            words = f"pass {array.name} as an argument, sharded as {problem.spec_text(array.spec or ())}"
            candidates.append(Candidate(words, _passed(problem, file, body, call, array)))
    step = StoryStep(f"{named or 'the array'} is not an argument of the function that shard_map maps", problem.place)
    return Reason(
        f"shard_map closes over {named or 'an array'}, whose axes are explicit", named, (step,), tuple(candidates)
    )


def _bodies(problem: Problem) -> Iterator[tuple[str, Function, ast.Call]]:
    """The functions that shard_maps map, each with the call of shard_map, or the decorator."""
    for file, call in shard_map_calls(problem.calls("shard_map", "partial")):
        for at, node in problem.nodes:
            if at == file and isinstance(node, Function) and maps(call, node):
                yield file, node, call


def _passed(problem: Problem, file: str, body: Function, call: ast.Call, array: Argument) -> Edits:
    """A parameter more, a spec more, and an argument more at each call of the mapped function."""
    parameters = body.args.args
    specs = next((each.value for each in call.keywords if each.arg == "in_specs"), None)
    if not parameters or specs is None:
        return ()
    spec = problem.spec_text(array.spec or ())
    last = parameters[-1]
    at = (last.end_lineno or last.lineno, last.end_col_offset or 0)
    written = ast.unparse(specs)
    if isinstance(specs, ast.Tuple):
        given = f"({', '.join([*map(ast.unparse, specs.elts), spec])})"
    else:
        given = f"({', '.join([written] * len(parameters))}, {spec})"
    calls = [each for each in _called(problem, file, body, call) if each.args]
    if not calls:
        return ()
    ends = (extent(each.args[-1])[2:] for each in calls)
    return together(
        (Edit(file, *at, *at, f", {array.name}"),),
        instead((file, specs), given),
        *((Edit(file, *end, *end, f", {array.name}"),) for end in ends),
    )


def _called(problem: Problem, file: str, body: Function, call: ast.Call) -> Iterator[ast.Call]:
    """The calls of the mapped function: of the expression that has the shard_map in it, or of a name for it."""
    is_decorator = isinstance(body, ast.FunctionDef) and call in body.decorator_list
    names = {body.name} if is_decorator and isinstance(body, ast.FunctionDef) else set()
    for at, node in problem.nodes:
        if at == file and isinstance(node, ast.Assign) and any(each is call for each in ast.walk(node.value)):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for at, node in problem.nodes:
        if at == file and isinstance(node, ast.Call):
            wraps = isinstance(node.func, ast.Call) and any(each is call for each in ast.walk(node.func))
            if wraps or (isinstance(node.func, ast.Name) and node.func.id in names):
                yield node
