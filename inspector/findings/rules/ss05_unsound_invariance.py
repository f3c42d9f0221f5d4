"""SS05: what a type says is the same on all devices, and is not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...dataflow.meaning import Does, does
from ...ir.types import JaxType
from ...report import Divergence, Finding, FindingPlace, Report, Severity, VariableVariance
from ..equations import Flow, flow_of
from ..rule import Rule, advice, finding

DECLARED = ("type", "inferred")

WITHOUT_GRADIENT = re.compile(r"(bool|pred|u?int\d+|[iu]\d+|s\d+)\Z")
"""Element types of numbers without a gradient."""


def check(report: Report) -> Iterator[Finding]:
    """Values that differ in the run, then those that may differ although their type says they do not."""
    flow = flow_of(report)
    if flow is None:
        return
    hidden = {(value.value, axis) for value in report.variance for axis in value.hidden}
    differing = {(d.value, d.axis) for d in report.divergences}
    leaves = not _results(flow).isdisjoint(name for name, _ in hidden | differing)
    for divergence in report.divergences:
        if divergence.is_first and divergence.declared in DECLARED:
            yield _differs(flow, divergence, _severity(divergence.type, leaves=leaves))
    for value in report.variance:
        for axis in value.hidden:
            if (value.value, axis) not in differing and _begins(flow, value, axis, hidden):
                yield _may_differ(flow, value, axis, _severity(value.type, leaves=leaves))


def _results(flow: Flow) -> set[str]:
    mapped = (place.equation for place in flow.text.equations if place.equation.shard_map is not None)
    return {name for each in mapped for _, body in each.bodies for name in flow.text.program.jaxprs[body].outputs}


def _severity(type: JaxType, *, leaves: bool) -> Severity:
    """A note of integers that stay inside, as those that a sort of varying keys permutes: they have no gradient."""
    return "info" if not leaves and WITHOUT_GRADIENT.match(type.array.dtype) else "error"


def _begins(flow: Flow, value: VariableVariance, axis: str, hidden: set[tuple[str, str]]) -> bool:
    """Return whether no operand of the equation hides the axis, so that it is lost here."""
    made = flow.by_id.get(value.equation)
    return made is not None and not any((name, axis) in hidden for name in made.equation.inputs)


def _differs(flow: Flow, found: Divergence, severity: Severity) -> Finding:
    one, other = (*found.devices, *found.devices)[:2] if found.devices else (0, 0)
    return finding(
        RULE,
        _place(flow, found.equation, found.value),
        f"{found.value} is typed invariant over {found.axis}, but differs between devices {one} and {other}",
        confidence="proved",
        severity=severity,
        subject=found.value,
        axes=(found.axis,),
        evidence=(
            ("type", str(found.type)),
            ("declared", f"by its {found.declared}" if found.declared == "type" else "by inference"),
            ("live", f"bits differ between devices {one} and {other} along {found.axis}"),
        ),
        fixes=advice(_fix(found.primitive, found.axis)),
    )


def _may_differ(flow: Flow, value: VariableVariance, axis: str, severity: Severity) -> Finding:
    what = "a predicate" if does(value.primitive) is Does.BRANCH else "another operand"
    entry = next((entry for entry in value.entered if entry.axis == axis), None)
    return finding(
        RULE,
        _place(flow, value.equation, value.value),
        f"{value.value} is typed invariant over {axis}, but {what} that varies over {axis} decides it",
        confidence="likely",
        severity=severity,
        subject=value.value,
        axes=(axis,),
        related=() if entry is None else (_place(flow, entry.equation, entry.by),),
        evidence=(("entered", "" if entry is None else f"{axis} by {entry.by}"),),
        fixes=advice(_fix(value.primitive, axis)),
    )


def _place(flow: Flow, equation: str, what: str) -> FindingPlace:
    place = flow.by_id[equation]
    return FindingPlace(f"{what} = {place.equation.primitive}", flow.source(place), "jaxpr", place.span)


def _fix(primitive: str, axis: str) -> str:
    match primitive:
        case "cond":
            return (
                "select with jnp.where, whose type includes the predicate's variance, and reduce the result over"
                f" {axis!r}; or reduce the predicate's operands over {axis!r}, so that all devices take the same branch"
            )
        case "while":
            return f"make all devices stop together: reduce the tested value over {axis!r}"
    return f"reduce the value over {axis!r}, or make its type vary over {axis!r}: lax.pcast(…, {axis!r}, to='varying')"


RULE = Rule(
    id="SS05",
    slug="unsound-invariance",
    severity="error",
    finds="A value whose type says that it is equal on all devices along an axis, although it differs, or may differ.",
    why="It can leave the shard_map through an out_spec without the axis. The caller then has one array whose copies"
    " differ, and which copy is read is arbitrary. JAX derives the type of a cond or while from its branches and"
    " carries, not from the predicate.",
    proof="`proved` by a run: two devices hold different bits. `likely` if a predicate or a loop bound varies over the"
    " axis, and the type of the result does not. A note of integers if no such value leaves the shard_map: JAX types"
    " what a sort permutes by each operand alone.",
    faulty="rate = lax.cond(jnp.sum(block) > 10, lambda r: r / 2, lambda r: r, rate)  # out_specs=P()",
    repaired='rate = lax.pmean(jnp.where(jnp.sum(block) > 10, rate / 2, rate), "x")',
    check=check,
    is_observation=True,
    by_hand="only the author knows whether a mean, a sum or one device's value is intended",
)
