"""How a value came to vary over a mesh axis, told from the program with its checks off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..findings.support.jaxpr_flow import Flow, flow_of
from ..ir.jaxpr_text import EquationPlace
from ..report import Report, StoryStep, VariableVariance

MAX_SHOWN_STEPS = 8
"""Steps that are told."""

MAX_STEPS = 200
"""Equations through which a value is followed."""


def story_of(unchecked: Report, place: EquationPlace, name: str, axis: str) -> tuple[StoryStep, ...]:
    """From where the axis enters to a value of the body of an equation, in that order."""
    flow = flow_of(unchecked)
    if flow is None:
        return ()
    values = {each.value: each for each in unchecked.variance}
    steps = list(_back(flow, values, place, name, axis))
    shown = steps
    if len(steps) > MAX_SHOWN_STEPS:
        more = StoryStep(f"… {len(steps) - MAX_SHOWN_STEPS} more steps")
        shown = [*steps[: MAX_SHOWN_STEPS // 2], more, *steps[-MAX_SHOWN_STEPS // 2 :]]
    entry = next((e for e in (values[name].entered if name in values else ()) if e.axis == axis), None)
    first = () if entry is None else (StoryStep(f"{axis} enters by {entry.by}", entry.source),)
    return (*first, *reversed(shown))


def _back(
    flow: Flow, values: Mapping[str, VariableVariance], place: EquationPlace, name: str, axis: str
) -> Iterator[StoryStep]:
    """Backwards along one operand that varies over the axis, out of the bodies of loops and branches."""
    by_name = {output: made for (_, output), (made, _) in flow.made.items()}
    seen: set[str] = set()
    while name not in seen and len(seen) < MAX_STEPS:
        seen.add(name)
        made = by_name.get(name)
        if made is None:
            name = _outside(flow, name, place) or ""
            if not name:
                return
            continue
        equation = made.equation
        value = values.get(name)
        operands = [one for one in equation.inputs if axis in _axes(values.get(one))]
        if not equation.bodies:
            text = f"{name}:{_typed(value)} = {equation.primitive} {' '.join(equation.inputs)}"
            yield StoryStep(text, flow.source(made))
        inputs = [one for one in equation.inputs if ":" not in one and one not in values]
        following = operands or inputs
        if not following:
            return
        name = following[0]


def _outside(flow: Flow, name: str, place: EquationPlace) -> str | None:
    """What an input of a body is outside of it; nothing at the border of the shard_map itself."""
    for number, jaxpr in enumerate(flow.jaxprs):
        names = [variable.name for variable in jaxpr.inputs]
        callers = flow.callers.get(number, [])
        if name in names and len(callers) == 1 and callers[0].id != place.id:
            offset = len(callers[0].equation.inputs) - len(names)
            position = names.index(name) + max(offset, 0)
            return callers[0].equation.inputs[position] if position < len(callers[0].equation.inputs) else None
    return None


def _typed(value: VariableVariance | None) -> str:
    """The type with the axes over which the value varies, as JAX prints it where the check is on."""
    if value is None:
        return ""
    axes = ",".join(value.varying)
    return f"{value.type}{{V:{axes if len(value.varying) < 2 else f'({axes})'}}}"


def _axes(value: VariableVariance | None) -> tuple[str, ...]:
    return () if value is None else value.varying
