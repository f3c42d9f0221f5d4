"""Values of explicit types that an operation cannot take as they are.

Partial sums over other axes than a product makes, dimensions that have to be unsharded, and arguments of a shard_map
that are sharded differently from its in_specs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...parsers.source import Frame
from ..findings.fixes.calls import name_of, nodes_of, shard_map_calls
from ..findings.fixes.edits import Edits, instead, with_keyword
from ..report import Explanation, Fix, SourcePosition, StoryStep
from .failed import Failed
from .operands import (
    SPEC,
    Spec,
    all_resharded,
    failing,
    operands,
    resharded,
    resharded_at,
    spec_of,
    spec_of_type,
    text_of,
)
from .operations import PRODUCTS
from .problem import argument_of

OTHER_AXES = re.compile(r"unreduced axes should be equal to.*?unreduced axes=(.*?) and contracting spec=(\(.*?\))\s*\Z")
UNLIKE = re.compile(
    r"contracting dims should be sharded identically.*?lhs_contracting_spec=(.*), rhs_contracting_spec=(.*)"
)
ONE_SIDE = re.compile(r"(lhs|rhs) is unreduced while (lhs|rhs) is not\. `(\w+)`")

PRODUCT = re.compile(
    r"lhs and rhs to `(\w+)` cannot be unreduced|unreduced rule for (\w+) is not implemented"
    r"|(\w+) is a non-linear operation and cannot accept input that is unreduced"
)

_AXIS = re.compile(r"'([^']*)'")


def explain_other_axes(failed: Failed, said: re.Match[str]) -> Explanation:
    """The axes that the contracting dimension is sharded over, and those that out_sharding names."""
    named, summed = (tuple(_AXIS.findall(text)) for text in said.groups())
    over = _listed(summed)
    makes = f"each device has a partial sum, to be reduced over {over}" if summed else "each device has full sums"
    steps = (
        StoryStep(f"both operands are sharded over {over} in the contracting dimension: {makes}", failed.place),
        StoryStep(f"out_sharding requests partial sums over {_listed(named)}", failed.place),
    )
    return Explanation(
        f"the product makes partial sums over {over}, but out_sharding requests them over {_listed(named)}",
        steps,
        (
            *_with_axes(failed, summed),
            Fix(f"or shard the contracting dimension of both operands over {_listed(named)}"),
        ),
    )


def explain_unlike(failed: Failed, said: re.Match[str]) -> Explanation:
    """The contracting dimension of each operand."""
    sides = [_listed(tuple(_AXIS.findall(text))) for text in said.groups()]
    steps = [
        StoryStep(f"the contracting dimension of the {which} operand is sharded over {axes}", failed.place)
        for which, axes in zip(("first", "second"), sides, strict=True)
    ]
    title = "partial sums require both operands to be sharded alike in the contracting dimension"
    return Explanation(title, tuple(steps), (Fix("reshard one operand in the contracting dimension like the other"),))


def explain_one_side(failed: Failed, said: re.Match[str]) -> Explanation:
    """A sum of partial sums and of whole ones."""
    partial, whole = ("first", "second") if said[1] == "lhs" else ("second", "first")
    title = f"reduce the {partial} operand first with jax.sharding.reshard, which keeps its other axes"
    reduced = [Fix(title, edits) for edits in resharded(failed, 0 if said[1] == "lhs" else 1, ())]
    return Explanation(
        f"`{said[3]}` of partial sums and of a value that is not a partial sum",
        (StoryStep(f"the {partial} operand is unreduced, the {whole} one is not", failed.place),),
        (*reduced,),
    )


def explain_products(failed: Failed, said: re.Match[str]) -> Explanation:
    """Explain what cannot be done with partial sums."""
    function = said[1] or said[2] or said[3]
    return Explanation(
        f"`{function}` of partial sums is not a partial sum of the result: reduce them first",
        (StoryStep("its operands are unreduced: each device has a partial sum", failed.place),),
        tuple(_reduced(failed)),
    )


def _reduced(failed: Failed) -> Iterator[Fix]:
    for edits in all_resharded(failed, ()):
        yield Fix("reduce first with jax.sharding.reshard, which keeps the operands' other axes", edits)
    for file, call in failing(failed, 1):
        for argument in call.args if isinstance(call, ast.Call) else ():
            for edits in resharded_at(failed, (file, argument), ()):
                yield Fix(f"reduce {ast.unparse(argument)} with jax.sharding.reshard before the call", edits)


def _with_axes(failed: Failed, axes: tuple[str, ...]) -> Iterator[Fix]:
    wanted = f"{{{', '.join(map(repr, axes))}}}" if axes else "frozenset()"
    for file, call in failed.calls(PRODUCTS):
        for spec in ast.walk(call):
            if isinstance(spec, ast.Call) and name_of(spec.func) in ("P", "PartitionSpec"):
                for keyword in spec.keywords:
                    if keyword.arg == "unreduced":
                        yield Fix(
                            f"keep the existing partial sums: unreduced={wanted}",
                            instead((file, keyword.value), wanted),
                        )


def _listed(axes: tuple[str, ...]) -> str:
    return ", ".join(map(repr, axes)) or "no axis"


_TYPE = r"(?P<type>\w+\[\S*?\])"
_SPEC = SPEC.replace("((?:", "(?P<spec>(?:", 1)

WHOLE = re.compile(
    "|".join(
        each.replace("(?P<", f"(?P<_{number}_")
        for number, each in enumerate(
            (
                rf"unsharded over the axis being reduced\. Got input type=\S*?{_TYPE}\)? and axis=(?P<dim>\d+)",
                rf"over the sorting dimension\. Got arg sharding=.*?spec={_SPEC}\) and sorting dimension=(?P<dim>\d+)",
                rf"compute the top_k values\. Got input type=\S*?{_TYPE}\)? and axis=(?P<dim>\d+)",
                rf"sharded on dimension (?P<dim>\d+) when the tiling is non-trivial\. Got input type: \S*?{_TYPE}",
                rf"sharded on the unstacking axis (?P<dim>\d+)\. Got operand type=\S*?{_TYPE}",
                rf"0th dimension of all xs should be replicated\. Got {_SPEC}(?P<first>)",
                rf"fully replicated when axis is not specified to \w+\. Got input type=\S*?{_TYPE}(?P<every>)",
                rf"Input (?P<number>\d+) to \w+ must be unsharded on non-batch dimensions, but got {_SPEC}",
                rf"on sharded dims where out dim .*? with spec \((?P<axes>.*?)\) is not.*? input type=\S*?{_TYPE}",
            )
        )
    ),
    re.DOTALL,
)


def explain_whole(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """Explain which dimension is sharded, and reshard the operand so that it is not."""
    found = {name.split("_", 2)[2]: text for name, text in said.groupdict().items() if text is not None}
    spec = spec_of(found["spec"]) if "spec" in found else spec_of_type(found["type"])
    dims = [dim for dim in _dims(found, spec) if dim < len(spec) and spec[dim]]
    if not dims:
        return None
    whole: Spec = tuple(() if dim in dims else axes for dim, axes in enumerate(spec))
    named = ", ".join(map(str, dims))
    dimension = f"dimension{'s' if len(dims) > 1 else ''} {named}"
    axes = ", ".join(repr(axis) for dim in dims for axis in spec[dim])
    title = f"reshard the operand to {text_of(whole)}: every device gathers {dimension}"
    return Explanation(
        f"the operation works along {dimension}, which is sharded over {axes}",
        (StoryStep(f"its operand is sharded as {text_of(spec)}", failed.place),),
        tuple(Fix(title, edits) for edits in resharded(failed, int(found.get("number", 0)), whole)),
    )


def _dims(found: dict[str, str], spec: Spec) -> list[int]:
    if "dim" in found:
        return [int(found["dim"])]
    if "first" in found:
        return [0]
    if "number" in found:
        return [len(spec) - 2, len(spec) - 1]
    if "axes" in found:
        axes = tuple(re.findall(r"\w+", found["axes"]))
        return [dim for dim, over in enumerate(spec) if over == axes]
    return list(range(len(spec)))


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
    names = argument_of(node, 1, "axis_names")
    return names.elts if isinstance(names, ast.Tuple | ast.List) else None
