"""Loops whose carry changes its sharding, branches that differ in theirs, convolutions, and arrays of two meshes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from ..findings.fixes.calls import name_of
from ..findings.fixes.edits import Placed, with_keyword, wrapped
from ..report import Explanation, Fix, StoryStep
from ..units import with_more
from .carries import initial_carry
from .failed import Failed, functions_named, results_of
from .operands import Spec, failing, resharded_at, shardings, spec_of_type, text_of

CARRY = re.compile(
    r"[Tt]he input carry (?:component )?(\S+) has type (\S+) but the corresponding output carry component has type"
    r" (\S+)[.;]\s"
)
BRANCHES = re.compile(r"[Tt]he output of \S+ has type (\S+) but the corresponding output of \S+ has type (\S+)\.\s")
CONVOLUTION = re.compile(r"Please specify the output sharding via `out_sharding` parameter of `(\w+)`")
MESHES = re.compile(
    r"(?:For primitive (\w+), context mesh|Got one mesh:?|mesh of) \w*Mesh\(([^)]*?)(?:, axis_types.*?)?\).*?"
    r"(?:should match the aval mesh|and another mesh:?|and) \w*Mesh\(([^)]*?)(?:, axis_types.*?)?\)",
    re.DOTALL,
)

BODIES = {"scan": 0, "while_loop": 1, "fori_loop": 2}
"""Position of the body among the arguments of functions of jax.lax."""


def explain_carry(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """Explain carries that an iteration shards otherwise: they begin, or go on, as the others are."""
    carries = list[tuple[str, Spec, Spec]]()
    for each in CARRY.finditer(failed.said):
        one, other = _sharded(each[2]), _sharded(each[3])
        if one is None or other is None or one[0] != other[0] or one[1] == other[1]:
            return None
        carries.append((each[1], one[1], other[1]))
    begins = [
        StoryStep(f"{name} starts as {text_of(before)}, and is {text_of(after)} after one iteration")
        for name, before, after in carries
    ]
    name, before, after = carries[0]
    fixes = list[Fix]()
    if len(carries) == 1:
        initial = initial_carry(failed, name)
        title = f"reshard the initial carry to {text_of(after)}, as an iteration gives it"
        fixes += [Fix(title, edits) for edits in (resharded_at(failed, initial[1], after) if initial else ())]
        title = f"reshard what an iteration gives to {text_of(before)}, as the carry starts"
        results = _results(failed, name)
        fixes += [Fix(title, edits) for placed in results for edits in resharded_at(failed, placed, before)]
    fixes += _tree(failed, {name: after for name, _, after in carries})
    kind = "are loop carries" if len(carries) > 1 else "is a loop carry"
    title = f"{with_more(name, len(carries))} {kind} whose sharding an iteration changes"
    return Explanation(title, tuple(begins), tuple(fixes))


def _tree(failed: Failed, wanted: Mapping[str, Spec]) -> Iterator[Fix]:
    """The tree of arrays with which the carries start, each resharded as that of another tree is: of the parameters."""
    root = re.split(r"\['", next(iter(wanted)), maxsplit=1)[0]
    found = initial_carry(failed, root)
    if found is not None and isinstance(found[1][1], ast.Name):
        specs = {name.removeprefix(root): spec for name, spec in wanted.items()}
        for other in dict.fromkeys(re.split(r"[\[.]", name, maxsplit=1)[0] for name in failed.specs):
            if all(failed.specs.get(other + path) == spec for path, spec in specs.items()):
                before = "jax.tree.map(lambda a, b: jax.sharding.reshard(a, jax.typeof(b).sharding), "
                title = f"reshard {found[1][1].id}, with which the carry starts, as {other} is"
                yield Fix(title, wrapped(found[1], before, f", {other})"))


def explain_branches(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """Explain branches of a cond whose results are sharded differently: each as the other."""
    one, other = _sharded(said[1]), _sharded(said[2])
    if one is None or other is None or one[0] != other[0] or one[1] == other[1]:
        return None
    kinds = ("the branch for true", "the branch for false")
    steps = [StoryStep(f"{kind} returns {text_of(spec)}") for kind, (_, spec) in zip(kinds, (one, other), strict=True)]
    fixes = [
        Fix(f"reshard the result of {kind} to {text_of(spec)}, as the other one is", edits)
        for file, call in failed.calls(("cond",))
        for number, kind, (_, spec) in ((2, kinds[1], one), (1, kinds[0], other))
        if len(call.args) > number
        for placed in _results_of(failed, file, call.args[number], "")
        for edits in resharded_at(failed, placed, spec)
    ]
    return Explanation("the branches' results are sharded differently", tuple(steps), tuple(fixes))


def explain_convolution(failed: Failed, said: re.Match[str]) -> Explanation:
    """Explain a convolution of which the sharding of the result is not clear: on every device, or as its input."""
    fixes: list[Fix] = []
    for file, call in failing(failed):
        match call:
            case ast.Call(args=[left, *_]):
                kept = f"jax.typeof({ast.unparse(left)}).sharding"
                fixes.append(
                    Fix("shard the result as the first operand is", with_keyword((file, call), "out_sharding", kept))
                )
                fixes += [
                    Fix("request the result on every device", with_keyword((file, call), "out_sharding", sharding))
                    for sharding in shardings(failed, file, left, "P()")
                ]
    title = (
        f"the sharding of the result of {said[1]} is ambiguous: a dimension that it sums, or slides over, is sharded"
    )
    return Explanation(title, (StoryStep("its out_sharding is not given", failed.place),), tuple(fixes))


def explain_meshes(failed: Failed, said: re.Match[str]) -> Explanation:
    """Explain an array of another mesh than the one that is set, or than the other operand's."""
    one, other = (each.strip(" ,") for each in said.groups()[1:])
    steps = (StoryStep(f"the mesh that is set, or the first one, has {one}", failed.place),)
    fix = Fix("put both on one mesh before the call: jax.device_put(array, NamedSharding(mesh, spec))")
    return Explanation(
        f"{said[1] or 'an operation'} has an operand of another mesh",
        (*steps, StoryStep(f"the operand's has {other}", failed.place)),
        (fix,),
    )


def _sharded(type: str) -> tuple[str, Spec] | None:
    inside = re.sub(r"@(\([^()]*\)|\w+)", "", type)
    return None if "{" in type else (inside, spec_of_type(type))


def _results(failed: Failed, name: str) -> Iterator[Placed]:
    for file, call in failed.calls(BODIES):
        function = name_of(call.func)
        path = name[name.index("[") :] if "[" in name else ""
        path = path.removeprefix("[1]") if function == "fori_loop" else path
        if len(call.args) > BODIES[function]:
            first = "[0]" if function == "scan" else ""
            yield from _results_of(failed, file, call.args[BODIES[function]], first + path)
        return


def _results_of(failed: Failed, file: str, function: ast.expr, path: str) -> Iterator[Placed]:
    match function:
        case ast.Lambda():
            yield from results_of(file, function, path)
        case ast.Name(id=name):
            for where, found in functions_named(failed, name):
                if where == file:
                    yield from results_of(where, found, path)
