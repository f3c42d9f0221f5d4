"""Auto, Explicit and Manual axes mixed, and collectives outside of shard_map."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.fixes.calls import function_around, holds, name_of
from ..findings.fixes.edits import Edits, instead, together, with_keyword, without_call, wrapped
from ..report import Edit, StoryStep
from .operands import spec_of, text_of
from .operations import REDUCTIONS
from .problem import Candidate, Problem, Reason, argument_of, without_keyword
from .sizes import BATCH

NOT_EXPLICIT = re.compile(
    r"passed to (?P<function>[\w.]+) cannot contain axis names that are of type Auto or Manual\. Got PartitionSpec:"
    r" P(?:artitionSpec)?\((?P<spec>.*?)\) with axis name: (?P<axis>\w+) of type: (?:AxisType\.)?(?P<type>\w+)"
)
MANUAL = re.compile(
    r"Axes mentioned in `manual_axis_type` field of ShapedArray should be of type `Manual`.*? with axis: (?P<axis>\w+)"
    r"|contains a manual axes? \(?(?P<axes>.*?)\)? of mesh|Axis: (?P<axis2>\w+) of .*? is also found in manual_axes"
    r"|context mesh.*?Manual.*?should match the (?:aval )?mesh",
    re.DOTALL,
)
ASSERTED = re.compile(
    r"passed to with_sharding_constraint can only refer to Auto axes of the mesh\. Got spec=P(?:artitionSpec)?"
    r"\((?P<spec>(?:[^()]|\([^()]*\))*)\)"
)
UNBOUND = re.compile(r"unbound axis name: (?P<axis>\w+)")
MAPPED = re.compile(
    r"Mapped away dimension of inputs passed to vmap should be sharded the same\. Got inconsistent axis specs:"
    r" (?P<one>.*?) vs (?P<other>.*)"
)
REDUCED = (*REDUCTIONS, "pvary", "pcast")


def explain_not_explicit(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain an out_sharding, or a reshard, over axes that are not explicit."""
    function, spec, kind = said["function"], spec_of(said["spec"]), said["type"]
    sharding = problem.named("NamedSharding")
    mesh = problem.mesh_of(axis for entry in spec for axis in entry)
    text = f"{sharding}({mesh}, {problem.spec_text(spec)})" if mesh else problem.spec_text(spec)
    candidates = []
    for file, node in problem.expressions[:3]:
        if not isinstance(node, ast.Call):
            continue
        if name_of(node.func) == "reshard" and kind == "Auto":
            given = argument_of(node, 1, "out_shardings")
            edits: Edits = instead((file, node.func), "jax.lax.with_sharding_constraint")
            title = "constrain the value: with_sharding_constraint takes Auto axes, reshard Explicit ones"
            candidates.append(Candidate(title, edits))
            if given is not None:
                candidates.append(Candidate(title, together(edits, instead((file, given), text))))
        keyword = next((k for k in node.keywords if k.arg in ("out_sharding", "out_shardings")), None)
        if keyword is not None and keyword.arg is not None:
            without = without_keyword(file, node, keyword.arg)
            if kind == "Auto":
                around = wrapped((file, node), "jax.lax.with_sharding_constraint(", f", {text})")
                title = "constrain the result with with_sharding_constraint, which takes Auto axes"
                candidates.append(Candidate(title, together(without, around)))
            candidates.append(Candidate(f"leave out {keyword.arg}: {said['axis']!r} is {kind} here", without))
    step = StoryStep(f"{said['axis']!r} is {kind} here; {function} takes a spec of Explicit axes", problem.place)
    title = f"{function} is given {text_of(spec)}, but {said['axis']!r} is an {kind} axis"
    explicit = _types(problem, "Explicit") if kind == "Auto" else iter(())
    return Reason(title, said["axis"], (step,), candidates=(*candidates, *explicit))


def explain_asserted(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain a constraint over explicit axes, of the user's or of a library that shards the leaves of a tree."""
    spec = text_of(spec_of(said["spec"]))
    own, trees = list[Edits](), list[Edits]()
    for file, call in problem.calls("with_sharding_constraint"):
        own.append(instead((file, call.func), "jax.sharding.reshard"))
    for file, call in problem.calls("filter_shard"):
        if len(call.args) == 2:
            tree, sharding = map(ast.unparse, call.args)
            leaf = f"jax.sharding.reshard(leaf, {sharding}) if isinstance(leaf, jax.Array) else leaf"
            trees.append(instead((file, call), f"jax.tree.map(lambda leaf: {leaf}, {tree})"))
    candidates = [
        Candidate("reshard the value: a constraint does not reshard over explicit axes", together(*edits))
        for edits in (own[:1], own, trees[:1], trees)
        if edits
    ]
    step = StoryStep("the axes are explicit; with_sharding_constraint shards over automatic ones", problem.place)
    title = f"with_sharding_constraint is given {spec}, over explicit axes"
    return Reason(title, "", (step,), candidates=(*candidates, *automatic(problem)))


def explain_manual(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain a constraint inside of a shard_map over its own axes."""
    axis = said["axis"] or said["axis2"] or ", ".join(re.findall(r"'(\w+)'", said["axes"] or "")) or "its axes"
    candidates = []
    for file, call in problem.calls("with_sharding_constraint", "reshard"):
        if call.args:
            edits = without_call(problem.program, (file, call))
            candidates.append(Candidate(f"leave out the constraint: {axis} is manual here", edits))
    step = StoryStep("inside of this shard_map a value is one device's block, which no mesh axis shards", problem.place)
    return Reason(
        f"a sharding constraint over {axis}, which shard_map has made manual", axis, (step,), tuple(candidates[:3])
    )


def explain_unbound(problem: Problem, said: re.Match[str]) -> Reason | None:
    """Explain a collective over an axis of a mesh where no shard_map maps over it."""
    axis = said["axis"]
    if problem.meshes() and not any(axis == name for mesh in problem.meshes() for name, _ in mesh.mesh):
        return None
    places = []
    frame = problem.place.frame
    around = None if frame is None else function_around(problem.program, frame.file, frame.line)
    for file, call in problem.calls(*REDUCED, "axis_index", "axis_size"):
        if frame is None or file != frame.file or (around is not None and not holds(around[1], call)):
            continue
        given = argument_of(call, 0 if name_of(call.func).startswith("axis_") else 1, "axis_name")
        given = None if given is None else problem.followed(file, given)
        # A name that is assigned nowhere is a parameter: the trial tells whether it was this axis.
        if isinstance(given, ast.Name) or (isinstance(given, ast.Constant) and given.value == axis):
            places.append((file, call))
    edits: list[Edit] = []
    for file, call in places:
        name = name_of(call.func)
        if name in ("axis_index", "axis_size"):
            edits += instead((file, call), "0" if name == "axis_index" else "1")
        else:
            edits += without_call(problem.program, (file, call))
    known = any(axis == name for mesh in problem.meshes() for name, _ in mesh.mesh)
    title = f"a collective over {axis!r} where no shard_map maps over it"
    words = f"values are global along {axis!r} here, so there is nothing to reduce: leave out the collectives"
    why = f"{axis!r} is an axis of the mesh, but not manual here" if known else f"no mesh here has an axis {axis!r}"
    given_to_library = [
        without_keyword(file, node, keyword.arg)
        for file, node in problem.nodes
        if isinstance(node, ast.Call) and name_of(node.func) not in (*REDUCED, "vmap", "pmap", "shard_map")
        for keyword in node.keywords
        if keyword.arg in ("axis_name", "pmap_axis_name", "bn_axis_name", "cross_replica_axis")
    ]
    edits = edits or list(together(*given_to_library)) if given_to_library else edits
    candidate = Candidate(f"{words}; the partitioner inserts the communication", tuple(edits))
    return Reason(title, axis, (StoryStep(why, problem.place),), candidates=(candidate,) if edits else ())


def explain_mapped(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain arguments of a vmap of which one is sharded in the mapped dimension, and the others are not."""
    axes = next((each.strip() for each in (said["one"], said["other"]) if each.strip() != "None"), "")
    names = tuple(re.findall(r"\w+", axes))
    candidates = []
    for file, node in problem.expressions[:4]:
        if isinstance(node, ast.Call):
            for argument in node.args:
                edits = wrapped((file, argument), "jax.sharding.reshard(", f", {problem.spec_text([names])})")
                candidates.append(Candidate(f"shard {ast.unparse(argument)} over {axes} as well", edits))
    step = StoryStep(f"one argument is sharded over {axes} in the mapped dimension, another is not", problem.place)
    title = "the arguments of vmap are sharded differently in the mapped dimension"
    return Reason(title, "", (step,), candidates=(*candidates, *automatic(problem)))


def automatic(problem: Problem) -> Iterator[Candidate]:
    """The call, and at last the mesh, with automatic axes, if they are explicit: JAX then chooses the shardings."""
    if any("Explicit" in each.types for each in problem.arguments):
        yield from _automatic_call(problem)
        yield from _types(problem, "Auto")


def _automatic_call(problem: Problem) -> Iterator[Candidate]:
    """The expression that failed with automatic axes, its result sharded as an array is in its first dimension."""
    arrays = [each for each in problem.arguments if each.kind in ("array", "tracer")]
    firsts = list(dict.fromkeys(each.spec[0] for each in arrays if each.spec and each.spec[0]))
    firsts.sort(key=lambda axes: not any(map(BATCH.match, axes)))
    places = [each for n, each in enumerate(problem.expressions[:2]) if not n or "vmap" in ast.unparse(each[1])]
    for first in [*firsts[:2], ()]:
        spec = text_of((first,) if first else ())
        for file, node in places:
            named = dict.fromkeys(each.id for each in ast.walk(node) if isinstance(each, ast.Name))
            used = [name for name in named if name != "self" and any(name == each.root for each in arrays)]
            if used:
                names = ", ".join(used)
                before = f"jax.sharding.auto_axes(lambda {names}: "
                title = (
                    f"let the compiler shard this expression alone, and its result as {spec}: jax.sharding.auto_axes"
                )
                yield Candidate(title, wrapped((file, node), before, f", out_sharding=jax.{spec})({names})"))


def _types(problem: Problem, kind: str) -> Iterator[Candidate]:
    title = f"make the axes of the mesh {kind}"
    if kind == "Auto":
        title += ": the compiler then shards each operation, and inserts what it needs"
    for file, node in problem.nodes:
        if not isinstance(node, ast.Call) or name_of(node.func) not in ("make_mesh", "Mesh"):
            continue
        names = argument_of(node, 1, "axis_names")
        names = None if names is None else problem.followed(file, names)
        if not isinstance(names, ast.Tuple | ast.List | ast.Constant):
            continue
        count = 1 if isinstance(names, ast.Constant) else len(names.elts)
        text = f"(jax.sharding.AxisType.{kind},) * {count}"
        now = next((each.value for each in node.keywords if each.arg == "axis_types"), None)
        edits = instead((file, now), text) if now is not None else with_keyword((file, node), "axis_types", text)
        yield Candidate(title, edits, is_last=kind == "Auto")
