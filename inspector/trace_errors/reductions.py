"""A collective or cast over axes of which its operand has only some, or has all already."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Collection, Iterator

from ..catalog.spellings import FUNCTIONS, functions_of
from ..findings.fixes.edits import instead, wrapped
from ..report import Explanation, Fix, StoryStep
from .carries import axes_in
from .failed import Failed
from .functions import calls_at, place_of, prefix_of

REDUCTIONS = functions_of("all-reduce", "reduce-scatter", "all-gather")
COLLECTIVES = (*FUNCTIONS, "axis_size")
_MIXED = re.compile(r"(\w+) can only accept axis_name which .*?Got input type: (\S+), axes: \(([^)]*)\)", re.DOTALL)
_CAST = re.compile(r"Unsupported pcast from=(\w+), to='(\w+)'")
_UNBOUND = re.compile(r"unbound axis name: (\w+)")


def explain(failed: Failed) -> Explanation | None:
    """The axes that the operand has, and those that never entered."""
    said = _MIXED.search(failed.said)
    if said is None:
        return None
    named = tuple(axis.strip(" '\"") for axis in said[3].split(",") if axis.strip())
    has = axes_in(said[2])
    entered, missing = (tuple(a for a in named if (a in has) is inside) for inside in (True, False))
    step = StoryStep(f"its operand is {said[2]}: {', '.join(missing)} never entered it", place_of(failed.failure))
    return Explanation(
        f"{said[1]} over {', '.join(named)} of a value that varies over {', '.join(entered) or 'none of them'} only",
        (step,),
        tuple(_fixes(failed, entered, missing)),
    )


def explain_cast(failed: Failed) -> Explanation | None:
    """A cast of what is so already."""
    said = _CAST.search(failed.said)
    if said is None:
        return None
    step = StoryStep(f"the value is {said[1]} already", place_of(failed.failure))
    fixes = tuple(
        Fix("leave out the cast", instead((file, call), ast.unparse(call.args[0])))
        for file, call in calls_at(failed.program, place_of(failed.failure).stack, ("pcast", "pvary"))
        if call.args
    )
    return Explanation(f"pcast from {said[1]} to {said[2]} changes nothing, and is not allowed", (step,), fixes)


def explain_unbound(failed: Failed) -> Explanation | None:
    """An axis that no mesh has, or none of the shard_maps around the call."""
    said, subject = _UNBOUND.search(failed.said), failed.program.capture.subject
    names = [axis.name for mesh in (() if subject is None else subject.meshes) for axis in mesh.axes]
    written = _unknown_axis(failed, names)
    wanted = said[1] if said else None if written is None else str(written[1].value)
    if wanted is None or (failed.said and said is None):
        return None
    where = place_of(failed.failure)
    if wanted in names:
        title = (
            f"have jax.shard_map map the function that calls it, over {wanted!r}; or leave it out: outside of shard_map"
            " a value is whole, and what has to be communicated is found by the partitioner"
        )
        step = StoryStep(f"no shard_map around this call maps over {wanted}", where)
        return Explanation(f"{wanted} is an axis of the mesh, and not a manual one here", (step,), (Fix(title),))
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
    words = f"the meshes have {', '.join(dict.fromkeys(names))}" if names else "no mesh is known here"
    title = f"did you mean {near[0]!r}?" if near else "name one of these, or call it inside a shard_map over a mesh"
    edits = instead(written, repr(near[0])) if near and written is not None and written[1].value == wanted else ()
    return Explanation(f"{wanted} is no axis of the mesh here", (StoryStep(words, where),), (Fix(title, edits),))


def _unknown_axis(failed: Failed, names: Collection[str]) -> tuple[str, ast.Constant] | None:
    """The axis of the innermost collective that no mesh has, as written: JAX may fail there without a word."""
    for file, call in calls_at(failed.program, place_of(failed.failure).stack[:1], COLLECTIVES):
        for node in ast.walk(call):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in names:
                return file, node
    return None


def _fixes(failed: Failed, entered: tuple[str, ...], missing: tuple[str, ...]) -> Iterator[Fix]:
    for file, call in calls_at(failed.program, place_of(failed.failure).stack, REDUCTIONS):
        axis = (
            call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "axis_name"), None)
        )
        if axis is not None and entered:
            text = repr(entered[0]) if len(entered) == 1 else repr(entered)
            yield Fix(f"reduce over {', '.join(entered)} only", instead((file, axis), text))
        if call.args:
            edits = wrapped((file, call.args[0]), f"{prefix_of(call)}pcast(", f", {missing!r}, to='varying')")
            yield Fix(f"count the value once for each device along {', '.join(missing)}, if that is meant", edits)
