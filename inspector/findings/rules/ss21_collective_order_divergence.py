"""SS21: devices that take different branches, and wait for each other in different collectives."""

from __future__ import annotations

from collections.abc import Iterator

from ...capture.model import WAITS
from ...catalog.spellings import rule_of
from ...dataflow.device_integers import Numbers, coordinates
from ...dataflow.meaning import Does, names_of
from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, Report
from ..equations import At, Flow, axis_sizes, devices_along, equations_of, operands_over
from ..rule import Rule, advice, finding

MAX_DEVICES = 1 << 12
"""Devices of which it is computed which branch they take."""

Sequence = tuple[tuple[str, tuple[str, ...]], ...]


def check(report: Report) -> Iterator[Finding]:
    """Each cond, and each while loop, that does not run the same collectives on devices that need each other."""
    for flow, place in equations_of(report, names_of(Does.BRANCH)):
        if place.equation.primitive == "while":
            yield from _while(report, flow, place)
            continue
        operands = operands_over(flow, place)
        varying = {held.axis for held in operands[0]} if operands else set()
        if varying:
            yield from _cond(report, flow, place, varying, [body for _, body in place.equation.bodies])


def _cond(report: Report, flow: Flow, place: EquationPlace, varying: set[str], bodies: list[int]) -> Iterator[Finding]:
    sequences = [_collectives(flow, body, varying, set()) for body in bodies]
    if len(set(sequences)) < 2:
        return
    listed = [(f"branch {number}", _words(each)) for number, each in enumerate(sequences)]
    axes = tuple(sorted({axis for each in sequences for _, over in each for axis in over} & varying))
    taken = _taken(report, flow, place, axes, len(bodies))
    is_certain = len({sequences[branch] for branch in taken}) > 1
    if is_certain:
        known = [f"{', '.join(map(str, devices))}: branch {branch}" for branch, devices in sorted(taken.items())]
        listed.insert(0, (f"devices along {', '.join(axes)}", "; ".join(known)))
    run = _stuck(report)
    yield finding(
        RULE,
        flow.place(place),
        f"devices along {', '.join(axes)} {'' if is_certain else 'may '}take branches with different collectives:"
        " deadlock",
        confidence="proved" if is_certain or run else "likely",
        axes=axes,
        evidence=(*listed, *run),
        fixes=advice(
            "move the collectives out of the branches: compute their operands in each, and reduce once after the cond;"
            f" or reduce the predicate over {', '.join(map(repr, axes))}, so that all devices take the same branch"
        ),
    )


def _taken(
    report: Report, flow: Flow, place: EquationPlace, axes: tuple[str, ...], branches: int
) -> dict[int, list[int]]:
    """Return the branch that each device along some axes takes, by position; empty where data decides it."""
    sizes = axis_sizes(report, flow, place)
    if (devices_along(axes, sizes) or MAX_DEVICES + 1) > MAX_DEVICES:
        return {}
    found: dict[int, list[int]] = {}
    for position, at in enumerate(coordinates(axes, sizes)):
        branch = Numbers(flow, sizes, at).value(At(place.jaxpr, place.equation.inputs[0]))
        if branch is None:
            return {}
        found.setdefault(min(max(branch, 0), branches - 1), []).append(position)
    return found


def _while(report: Report, flow: Flow, place: EquationPlace) -> Iterator[Finding]:
    bodies = dict(place.equation.bodies)
    condition, body = bodies.get("cond_jaxpr", 0), bodies.get("body_jaxpr", 0)
    tested = flow.jaxprs[condition].outputs[:1]
    made = flow.made.get((condition, tested[0])) if tested else None
    varying = {
        axis
        for value in report.variance
        if made is not None and value.equation == made[0].id
        for axis in (*value.varying, *value.hidden)
    }
    found = _collectives(flow, body, varying, set())
    if not varying or not found:
        return
    axes = tuple(sorted({axis for _, over in found for axis in over} & varying))
    yield finding(
        RULE,
        flow.place(place),
        f"devices along {', '.join(axes)} may leave a loop with collectives at different times: deadlock",
        confidence="proved" if (run := _stuck(report)) else "likely",
        axes=axes,
        evidence=(("in the loop", _words(found)), ("condition", f"{tested[0]} varies over {', '.join(axes)}"), *run),
        fixes=advice(f"make all devices stop together: reduce the tested value over {', '.join(map(repr, axes))}"),
    )


def _stuck(report: Report) -> tuple[tuple[str, str], ...]:
    failure = report.capture.failure
    return (("in the run", failure.message),) if failure is not None and failure.type == WAITS else ()


def _collectives(flow: Flow, body: int, varying: set[str], seen: set[int]) -> Sequence:
    found: list[tuple[str, tuple[str, ...]]] = []
    if body in seen:
        return ()
    for equation in flow.jaxprs[body].equations:
        rule = rule_of(equation.primitive)
        axes = tuple(axis for axis in equation.axes or () if axis in varying)
        if rule is not None and rule.lowers_to is not None and axes:
            found.append((equation.primitive, axes))
        for _, inner in equation.bodies:
            found += _collectives(flow, inner, varying, seen | {body})
    return tuple(found)


def _words(sequence: Sequence) -> str:
    return ", ".join(f"{name} over {', '.join(axes)}" for name, axes in sequence) or "none"


RULE = Rule(
    id="SS21",
    slug="collective-order-divergence",
    severity="error",
    finds="Branches or a loop in which devices that communicate with each other do not execute the same collectives.",
    why="A collective waits for all devices of its group. If some of them took another branch or have left the loop,"
    " it waits forever, or pairs with a different collective.",
    proof="The predicate, traced back to the in_specs and to axis_index, varies over an axis, and the branches'"
    " collectives over that axis differ. `proved` if the predicate depends on axis_index only, as it is evaluated"
    " for each device along the axis; or if a run on CPUs waited until XLA gave up. `likely` if data decides it,"
    " as the data may agree on all devices.",
    faulty='lax.cond(jnp.sum(block) > 0, lambda b: lax.psum(b, "x"), lambda b: b, block)',
    repaired='lax.psum(jnp.where(jnp.sum(block) > 0, block, 0), "x")',
    check=check,
    is_observation=True,
    by_hand="only the author knows what all devices should do",
)
