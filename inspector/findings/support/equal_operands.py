"""What the operands of a collective really are over the mesh axes."""

from __future__ import annotations

from ...ir.jaxpr_text import EquationPlace
from ...variance.held import Value
from ...variance.inference import infer
from .jaxpr_flow import MAX_STEPS, At, Flow

SAYS_NOTHING = ("axis_index",)
"""Equations without operands that are no constants."""


def operands_over(flow: Flow, place: EquationPlace) -> tuple[Value, ...]:
    """Of each operand, the axes over which devices may hold different values; none for what is in no shard_map."""
    return infer(flow.text, "values").operands.get(place.id, ())


def equal_along(flow: Flow, place: EquationPlace) -> tuple[tuple[str, ...], ...]:
    """For each operand of a reduction, those of its axes along which all devices hold the same."""
    axes = place.equation.axes or ()
    differing = ({held.axis for held in value} for value in operands_over(flow, place))
    return tuple(tuple(axis for axis in axes if axis not in along) for along in differing)


def is_unchecked(flow: Flow, place: EquationPlace) -> bool:
    """Whether an equation stands in a shard_map with its check off."""
    return place.id in infer(flow.text, "values").unchecked


def is_constant(flow: Flow, place: EquationPlace, position: int) -> bool:
    """Whether an operand is made of literals alone, whatever is computed with them."""
    waiting = [At(place.jaxpr, place.equation.inputs[position])]
    seen = set(waiting)
    while waiting and len(seen) < MAX_STEPS:
        at = waiting.pop()
        made = flow.made.get((at.jaxpr, at.name))
        found: list[At | None] = []
        if made is not None:
            equation = made[0].equation
            if equation.primitive in SAYS_NOTHING:
                return False
            found = [At(at.jaxpr, name, at.calls) for name in equation.inputs]
        elif ":" not in at.name:
            found = [flow.operand(at)]
        for each in found:
            if each is None:
                return False
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return not waiting
