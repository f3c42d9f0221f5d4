"""Rules that go with a function: a custom_vjp's backward rule, a vmap's mesh axis, what a shard_map closes over."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.fixes.calls import binds, shard_map_calls
from ..findings.fixes.edits import Edits, Placed, axes_text, extent, instead, together, wrapped
from ..report import Edit, StoryStep
from .carries import axes_in
from .failed import Function, maps, results_of
from .problem import ARRAYS, Argument, Candidate, Problem, Reason, without_keyword

BACKWARD = re.compile(
    r"bwd rule (?:attached to [^\n]* )?must produce an output with the same type.*?at output(?P<path>\S*) the bwd rule"
    r" produced an output of type (?P<made>\S+) corresponding to an input of type (?P<wanted>\S+?),?"
    r" so the manual axis types do not match",
    re.DOTALL,
)
MAPPED_AXIS = re.compile(
    r"vmap spmd_axis_name \((?P<axes>[^)]*)\) cannot appear in (?P<what>\w+) spec,"
    r" but got spec (?P<spec>P\w*\(.*?\))\s*$",
    re.MULTILINE,
)


def explain_backward(problem: Problem, said: re.Match[str]) -> Reason | None:
    """Explain a gradient that varies over other mesh axes than the argument that it is of."""
    made, wanted = axes_in(said["made"]), axes_in(said["wanted"])
    more = tuple(axis for axis in made if axis not in wanted)
    less = tuple(axis for axis in wanted if axis not in made)
    if not more and not less:
        return None
    casts = []
    for file, result in _gradients(problem, said["path"]):
        if more:
            title = f"sum it over {', '.join(more)}: each device has a part of the gradient"
            casts.append(Candidate(title, wrapped((file, result), "jax.lax.psum(", f", {axes_text(more)})")))
        if less:
            title = f"cast it to vary over {', '.join(less)}"
            edits = wrapped((file, result), "jax.lax.pcast(", f", {axes_text(less)}, to='varying')")
            casts.append(Candidate(title, edits))
    varies = f"varies over {', '.join(made)}" if made else "is the same on all devices"
    argument = f"over {', '.join(wanted)}" if wanted else "over no axis"
    steps = (
        StoryStep(f"the argument varies {argument}", problem.place),
        StoryStep(f"the gradient that the backward rule returns for it {varies}", problem.place),
    )
    title = f"the backward rule's gradient{said['path']} varies over other axes than its argument"
    return Reason(title, "", steps, candidates=tuple(casts))


def _gradients(problem: Problem, path: str) -> Iterator[Placed]:
    for _, call in problem.calls("defvjp"):
        rule = call.args[1] if len(call.args) > 1 else None
        for file, function in problem.nodes:
            if isinstance(rule, ast.Name) and isinstance(function, ast.FunctionDef) and function.name == rule.id:
                yield from results_of(file, function, path)


def explain_mapped_axis(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain a vmap whose dimension is sharded over an axis that a constraint inside of it names."""
    used = re.findall(r"'(\w+)'", said["axes"])
    named = re.findall(r"'(\w+)'", said["spec"])
    others = dict.fromkeys(axis for mesh in problem.meshes() for axis, _ in mesh.mesh if axis not in (*named, *used))
    candidates = []
    for file, call in problem.calls("vmap"):
        keyword = next((each for each in call.keywords if each.arg == "spmd_axis_name"), None)
        if keyword is not None:
            for axis in others:
                title = f"shard the mapped dimension over {axis}, which the constraint does not name"
                candidates.append(Candidate(title, instead((file, keyword.value), repr(axis))))
            title = "leave the mapped dimension to the partitioner, without spmd_axis_name"
            candidates.append(Candidate(title, without_keyword(file, call, "spmd_axis_name")))
    over = ", ".join(used)
    steps = (
        StoryStep(f"vmap shards the dimension that it maps over {over}", problem.place),
        StoryStep(f"{said['what']} inside of it names {over}, too: {said['spec']}", problem.place),
    )
    return Reason(f"{over} would shard two dimensions of one value", over, steps, candidates=tuple(candidates))


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
