"""Gradients of a loss that was reduced inside of the function that is differentiated, without the check."""

from __future__ import annotations

from ...dataflow.meaning import ELEMENTWISE, STRAIGHT
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from ...report import Report
from .compiled import SUMS
from .device_values import axis_sizes, devices_along, divides, is_constant, operands_over
from .jaxpr_flow import MAX_STEPS, At, Flow


def gradient_factor(report: Report, flow: Flow, place: EquationPlace, number: int, axes: tuple[str, ...]) -> int | None:
    """Return how many times too large the gradients are that a psum of the backward pass leads to.

    The psum is the transpose of one of a loss, as its operand is made of constants: all devices begin with the same
    derivative of one value. None where it is no such psum, where something divides by that number afterwards, or where
    what was reduced meets values that differ: then the devices' losses may be meant to be added up.
    """
    size = devices_along(axes, axis_sizes(report, flow, place))
    if size is None or size < 2 or not is_constant(flow, At(place.jaxpr, place.equation.inputs[number])):
        return None
    return size if _is_a_loss(flow, place, axes) and not _is_divided(flow, place, number, size) else None


def _is_a_loss(flow: Flow, place: EquationPlace, axes: tuple[str, ...]) -> bool:
    """Return whether what the psum of the forward pass gives stays equal along the axes."""
    line = flow.source(place).frame
    written = [
        each
        for each in flow.text.equations
        if each.equation.primitive in SUMS and not flow.is_backward(each) and flow.source(each).frame == line
    ]
    losses = [At(each.jaxpr, output.name) for each in written for output in each.equation.outputs]
    reach = forward(flow, losses, ELEMENTWISE, keeps=lambda use: not flow.is_backward(use.place))
    operands = (value for use in reach.steps for value in operands_over(flow, use.place))
    return bool(written) and not any(held.axis in axes for value in operands for held in value)


def _is_divided(flow: Flow, place: EquationPlace, number: int, size: int) -> bool:
    """Return whether something that is made of the psum is divided by a number after the backward pass."""
    result = At(place.jaxpr, place.equation.outputs[number].name)
    reach = forward(flow, [result], ~STRAIGHT, carried=True, limit=MAX_STEPS)
    if len(reach.values) >= MAX_STEPS:
        return True  # not known
    return any(divides(use, size) and not flow.is_backward(use.place) for use in reach.steps)
