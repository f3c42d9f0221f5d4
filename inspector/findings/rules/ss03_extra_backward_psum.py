"""SS03: a sum in the backward pass that JAX adds because it cannot know that the summands are equal."""

from __future__ import annotations

from collections.abc import Iterator

from ...dataflow.jaxpr import divides
from ...dataflow.meaning import ELEMENTWISE, SAME, STRAIGHT, meaning_of
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, Fix, Report
from ..compiled import SUMS, at_most, certainty, compiled_to, is_compiled, sum_compiled_as
from ..equations import (
    MAX_STEPS,
    At,
    Flow,
    axis_sizes,
    devices_along,
    equal_along,
    equations_of,
    is_constant,
    is_unchecked,
    operands_over,
)
from ..fixes.calls import call_at
from ..fixes.edits import Edits, keyword_changes, left_out, together, with_keyword
from ..fixes.reductions import REDUCING
from ..rule import Rule, alternatives, finding

ADVICE = {
    "psum": "use shard_map(…, check_vma=True): a psum of an invariant cotangent then transposes to no collective",
    "reduce_scatter": "name the axis in out_specs instead of the all_gather; or use check_vma=True with"
    " lax.all_gather(…, to='invarying'), which transposes to a slice",
}
"""Advice by what psum and all_gather transpose to with the check off."""

INSIDE = "use shard_map(…, check_vma=True); or differentiate each device's own loss, and sum its value afterwards"
"""Advice where the gradients are taken inside of the shard_map, so that nothing divides first."""


def check(report: Report) -> Iterator[Finding]:
    """Each sum of the backward pass of an unchecked shard_map whose operand is equal along some of its axes."""
    for flow, place in equations_of(report, ADVICE):
        if is_unchecked(flow, place) and flow.is_backward(place):
            for number, axes in enumerate(equal_along(flow, place)):
                if axes:
                    yield from _found(report, flow, place, number, axes)


def _found(report: Report, flow: Flow, place: EquationPlace, number: int, axes: tuple[str, ...]) -> Iterator[Finding]:
    equation, type = place.equation, place.equation.outputs[number].type
    compiled, factor = sum_compiled_as(report, flow, place, number), gradient_factor(report, flow, place, number, axes)
    if is_compiled(report) and compiled is None and factor is None:
        return
    along = ", ".join(axes)
    own = _sum_of_custom_vjp(flow, place, number, axes)
    message = f"the backward pass sums {type} over {along}, where all devices hold the same value"
    if factor is not None:
        message = f"the gradient is {factor} times that of the loss: its sum over {along} is transposed to another sum"
    elif own is not None:
        message = _again(report, flow, place, own, axes) or message
    mapped = flow.shard_map_around(place)
    yield finding(
        RULE,
        flow.place(place),
        message,
        confidence=certainty(compiled) if factor is None else "likely",
        subject="" if own is None else own.equation.primitive,
        severity=None if factor is None else "error",
        axes=axes,
        related=[flow.place(each) for each in (own, mapped) if each is not None],
        evidence=(
            *_summed_before(report, flow, own),
            (
                "operand",
                f"{equation.inputs[number]} does not vary over {along}, according to in_specs and the equations",
            ),
            compiled_to(compiled),
            *(() if factor is None else (("afterwards", f"nothing that is made of it is divided by {factor}"),)),
        ),
        fixes=(
            *_without(report, flow, place if own is None else own, is_own=own is not None),
            *alternatives(ADVICE[equation.primitive] if factor is None else INSIDE, _changes(report, flow, place)),
        ),
        saves=at_most(compiled),
    )


def _sum_of_custom_vjp(flow: Flow, place: EquationPlace, number: int, axes: tuple[str, ...]) -> EquationPlace | None:
    """The psum in the backward function of a custom_vjp whose result is summed here over the same axes."""

    def is_end(each: EquationPlace) -> bool:
        return flow.body(each) is None and meaning_of(each.equation.primitive).does not in SAME

    made = list(filter(is_end, flow.makers(At(place.jaxpr, place.equation.inputs[number]), is_end)))
    own = made[0].equation if len(made) == 1 else None
    is_own = own is not None and own.in_custom_vjp and own.primitive in SUMS
    return made[0] if own is not None and is_own and set(axes) <= set(own.axes or ()) else None


def _again(report: Report, flow: Flow, place: EquationPlace, own: EquationPlace, axes: tuple[str, ...]) -> str | None:
    """The effect of a second sum: the number of devices times what the backward function gives."""
    count = devices_along(axes, axis_sizes(report, flow, place))
    names = [frame.function.split(".")[-1] for frame in flow.source(own).stack[:1]]
    function = next((name for name in names if name.isidentifier()), "the custom_vjp")
    if count is None:
        return None
    along = ", ".join(axes)
    return f"the backward pass sums over {along} once more what {function} has summed: {count} times its gradient"


def _summed_before(report: Report, flow: Flow, own: EquationPlace | None) -> Iterator[tuple[str, str]]:
    if own is not None:
        yield "summed before", f"{own.equation.primitive} over {', '.join(own.equation.axes or ())} in a custom_vjp"
        if report.capture.gradients is None:
            yield "the true gradient", "--check-gradients compares with differences of values"


def _without(report: Report, flow: Flow, summed: EquationPlace, *, is_own: bool) -> Iterator[Fix]:
    """The sum of a custom_vjp left out; or that of the forward pass, where values say that another one is enough."""
    if not is_own and report.capture.execution is None:
        return
    yield from left_out(report.program, [flow.source(summed)], REDUCING)


def _changes(report: Report, flow: Flow, place: EquationPlace) -> Iterator[Edits]:
    """The check on instead of off, in one shard_map after the other: the program does not say which one is meant."""
    around = (place, flow.shard_map_around(place))
    files = [frame.file for each in around if each is not None for frame in flow.source(each).stack]
    to_all = with_keyword(call_at(report.program, flow.source(place), ("all_gather",)), "to", "'invarying'")
    for checked in keyword_changes(report.program, files, ("check_vma", "check_rep"), "True"):
        yield checked
        yield together(checked, to_all)


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
    return any(divides(use.place, use.position, size) and not flow.is_backward(use.place) for use in reach.steps)


RULE = Rule(
    id="SS03",
    slug="extra-backward-psum",
    severity="warning",
    finds="A psum or psum_scatter in the backward pass, under check_vma=False, of a value that is already equal on all"
    " devices along the axis.",
    why="With the check off, JAX does not know which cotangents are replicated, and has to transpose psum to psum and"
    " all_gather to psum_scatter. If the backward pass divides first and sums again, the communication is wasted;"
    " if it does not divide, the gradient is too large. That is an error where jax.grad is called inside of the"
    " shard_map, of a loss that is summed in the function that is differentiated.",
    proof="The sum is in the transpose of a shard_map with its check off. Its operand is traced back to the in_specs,"
    " through the residuals of the forward pass: nothing that varies over the axis enters it. `proved` if the"
    " compiled program has the sum too. An error if its operand is made of constants, as the derivative of a loss is,"
    " and nothing divides by the number of devices afterwards.",
    faulty="jax.grad(jax.shard_map(loss, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False))",
    repaired="jax.grad(jax.shard_map(loss, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=True))",
    check=check,
    is_observation=True,
    of_gradients=True,
    tries="the forward sum left out; check_vma=True, one shard_map at a time; all_gather with to='invarying'",
)
