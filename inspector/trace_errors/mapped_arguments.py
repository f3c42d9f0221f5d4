"""Arguments of a shard_map, over explicit axes, that are sharded differently from its in_specs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...parsers.source import Frame
from ..findings.fixes.calls import name_of, nodes_of, shard_map_calls
from ..findings.fixes.edits import Edits, instead, with_keyword
from ..report import Explanation, Fix, SourcePosition, StoryStep
from .explicit_specs import SPEC, Spec, spec_of, text_of
from .failed import Failed
from .operands import operands, resharded_at

IN_SPECS = re.compile(rf"in_specs passed to shard_map: {SPEC} does not match the specs of the input: {SPEC} for arg")


def explain_in_specs(failed: Failed, said: re.Match[str]) -> Explanation:
    """Explain an argument of a shard_map that is sharded differently from its in_spec."""
    wanted, given = (spec_of(text) for text in said.groups())
    steps = (
        StoryStep(f"the argument is sharded as {text_of(given)}", failed.place),
        StoryStep(f"its in_spec is {text_of(wanted)}", _place_of(failed, wanted)),
    )
    fixes = [
        Fix(f"reshard the argument to {text_of(wanted)}", edits)
        for placed in operands(failed)
        for edits in resharded_at(failed, placed, wanted)
    ]
    fixes += [Fix("make the axes of the mesh automatic, not explicit", edits) for edits in _automatic(failed)]
    if not failed.failure.stack:
        passed = f"jax.device_put(x, jax.NamedSharding(mesh, {text_of(wanted)}))"
        fixes.append(Fix(f"pass an argument that is sharded as {text_of(wanted)}, as in {passed}"))
    return Explanation("an argument of the shard_map is sharded differently from its in_spec", steps, tuple(fixes))


def _place_of(failed: Failed, wanted: Spec) -> SourcePosition:
    """Return the position of the only in_spec of that text, else that of the call that failed."""
    specs = [
        (file, spec)
        for file, call in shard_map_calls(failed.nodes)
        for keyword in call.keywords
        if keyword.arg == "in_specs"
        for spec in ast.walk(keyword.value)
        if isinstance(spec, ast.Call) and ast.unparse(spec).endswith(text_of(wanted))
    ]
    if len(specs) != 1:
        return failed.place
    file, spec = specs[0]
    return SourcePosition((Frame(file, "", spec.lineno),), "name")


def _automatic(failed: Failed) -> Iterator[Edits]:
    """Yield each mesh that is made with explicit axes, which are JAX's default, with automatic ones."""
    for file in failed.files:
        for node in nodes_of(failed.program, file):
            names = _axis_names(node)
            if isinstance(node, ast.Call) and names is not None:
                text = f"(jax.sharding.AxisType.Auto,) * {len(names)}"
                types = next((each.value for each in node.keywords if each.arg == "axis_types"), None)
                adding = with_keyword((file, node), "axis_types", text)
                yield adding if types is None else instead((file, types), text)


def _axis_names(node: ast.AST) -> list[ast.expr] | None:
    """Return the names of the axes in a call of `jax.make_mesh`, if it spells them out."""
    if not isinstance(node, ast.Call) or name_of(node.func) != "make_mesh":
        return None
    named = [each.value for each in node.keywords if each.arg == "axis_names"]
    names = next(iter((*node.args[1:2], *named)), None)
    return names.elts if isinstance(names, ast.Tuple | ast.List) else None
