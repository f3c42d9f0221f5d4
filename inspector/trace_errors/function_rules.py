"""Rules that go with a function: the backward rule of a custom_vjp, and the mesh axis of a vmap."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.fixes.edits import Placed, axes_text, instead, wrapped
from ..report import StoryStep
from .candidates import Candidate, Reason
from .carries import axes_in
from .functions import results_of
from .problem import Problem, without_keyword

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
    return Reason(title, "", steps, tuple(casts))


def _gradients(problem: Problem, path: str) -> Iterator[Placed]:
    """The results at a path of the functions that are backward rules."""
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
    return Reason(f"{over} would shard two dimensions of one value", over, steps, tuple(candidates))
