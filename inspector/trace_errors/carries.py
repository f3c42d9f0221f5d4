"""A loop that carries a value in which an axis enters on the way, or a cond whose branches differ in an axis."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...parsers.errors import readable
from ...parsers.sharding_syntax.jax_arrays import parse_array_type
from ..findings.fixes.calls import name_of, nodes_of
from ..findings.fixes.edits import Placed, together, wrapped
from ..report import Explanation, Fix, StoryStep
from .failed import Failed, element, functions_named, prefix_of, results_of
from .problem import argument_of

INITIAL = {"scan": (1, "init"), "while_loop": (2, "init_val"), "fori_loop": (3, "init_val")}
"""Position of the carried values in functions of jax.lax."""

CARRY = re.compile(
    r"[Tt]he input carry (?:component )?(\S+) has type (\S+) but the corresponding output carry component has type"
    r" (\S+), so the manual axis types do not match"
)
BRANCHES = re.compile(
    r"[Tt]he output of (branch \d+|\S+) has type (\S+) but the corresponding output of (branch \d+|\S+) has type (\S+),"
    r" so the manual axis types do not match"
)
_BRANCH = re.compile(r"^(branch \d+|\w+) is (\S+) at (.*):(\d+)$", re.MULTILINE)


def explain_carry(failed: Failed, said: re.Match[str]) -> Explanation:
    """Explain where the axis enters in the loop, and which cast the initial value needs."""
    name, before, after = said.groups()
    axes = _entering(before, after)
    initial = initial_carry(failed, name)
    if initial is not None and name.startswith("loop_carry") and isinstance(initial[1][1], ast.Name):
        name = initial[1][1].id  # fori_loop has no name for it
    stories = [failed.story_at(("scan", "while"), axis) for axis in axes]
    steps = dict.fromkeys(step for part in (slice(1), slice(1, None)) for story in stories for step in story[part])
    begins = StoryStep(f"{name} starts as {before}, and is {after} after one iteration", failed.place)
    them = "it" if len(axes) == 1 else "them"
    return Explanation(
        f"{name} is a loop carry that starts without {', '.join(axes)} in its type and comes to vary over {them}",
        (*steps, begins),
        tuple(_fixes(failed, axes)),
    )


def _entering(before: str, after: str) -> tuple[str, ...]:
    return tuple(axis for axis in axes_in(after) if axis not in axes_in(before))


def explain_branches(failed: Failed, said: re.Match[str]) -> Explanation:
    """The branch that lacks an axis, and its cast."""
    one, type, other, other_type = said.groups()
    more = tuple(axis for axis in axes_in(type) if axis not in axes_in(other_type))
    less = tuple(axis for axis in axes_in(other_type) if axis not in axes_in(type))
    lacking, axes = (other, more) if more else (one, less)
    steps = (
        StoryStep(f"{one} returns {type}"),
        StoryStep(f"{other} returns {other_type}", failed.place),
    )
    return Explanation(
        f"{lacking} returns a value without {', '.join(axes)}, over which the other branch's varies",
        steps,
        tuple(_cast_branch(failed, lacking, axes)),
    )


def axes_in(type: str) -> tuple[str, ...]:
    """The axes over which a type varies: `x` and `y` in `f32[2]{V:(x,y)}`."""
    array = readable(lambda: parse_array_type(type))
    return () if array is None else array.varying


def initial_carry(failed: Failed, name: str) -> tuple[ast.Call, Placed] | None:
    """Return the loop that failed, and what it starts with for a carry; None where that is not written."""
    for call, (file, initial) in _initial(failed):
        function = name_of(call.func)
        path = name[name.index("[") :] if "[" in name else ""
        if function == "fori_loop" and path.startswith("[1]"):
            path = path.removeprefix("[1]")  # of the pair that it carries itself: the counter, and the user's value
        if path and isinstance(initial, ast.Name):
            initial = _assigned(failed, file, initial) or initial
        value = element(initial, path)
        return (call, (file, value)) if value is not None and not (path and value is initial) else None
    return None


def _initial(failed: Failed) -> Iterator[tuple[ast.Call, Placed]]:
    for file, call in failed.calls(INITIAL):
        initial = argument_of(call, *INITIAL[name_of(call.func)])
        if initial is not None:
            yield call, (file, initial)


def _fixes(failed: Failed, axes: tuple[str, ...]) -> Iterator[Fix]:
    """The components that start without axes cast where they are written, together; or all with which it starts."""
    components = [(initial_carry(failed, each[1]), _entering(each[2], each[3])) for each in CARRY.finditer(failed.said)]
    every = [(found, over) for found, over in components if found is not None]
    whole = [(found, axes) for found in _initial(failed)][: 0 if len(every) == len(components) else 1]
    for each in (every, whole):
        casts = [_cast(prefix_of(call), placed, over, "the initial carry") for (call, placed), over in each]
        if casts:
            yield Fix(casts[0].title, together(*(fix.edits for fix in casts)))


def _cast_branch(failed: Failed, branch: str, axes: tuple[str, ...]) -> Iterator[Fix]:
    described = {each[1]: (each[2], each[3], int(each[4])) for each in _BRANCH.finditer(failed.said)}
    name, file, line = described.get(branch, ("", "", 0))
    for where, function in functions_named(failed, name):
        inside = function.lineno == line or (isinstance(function, ast.FunctionDef) and function.lineno <= line)
        if where != file or not inside:
            continue
        for placed in results_of(where, function, ""):
            yield _cast(failed.lax(where), placed, axes, f"the result of {branch}")


def _cast(lax: str, placed: Placed, axes: tuple[str, ...], what: str) -> Fix:
    edits = wrapped(placed, f"{lax}pcast(", f", {axes!r}, to='varying')")
    return Fix(f"cast {what} to vary over {', '.join(axes)}", edits)


def _assigned(failed: Failed, file: str, name: ast.Name) -> ast.expr | None:
    found = [
        node
        for node in nodes_of(failed.program, file)
        if isinstance(node, ast.Assign) and node.lineno < name.lineno
        if any(isinstance(target, ast.Name) and target.id == name.id for target in node.targets)
    ]
    return max(found, key=lambda node: node.lineno).value if found else None
