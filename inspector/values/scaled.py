"""Gradients among the results that a run on one device gives otherwise, by a whole number."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...parsers.record import Record
from ..capture.model import Capture
from ..capture.one_device import RESULT_TOLERANCE
from ..dataflow.jaxpr import At, JaxprFlow
from ..ir.jaxpr_text import EquationPlace


class ScaledGradient(Record, frozen=True):
    """A result that is a gradient, or an `argument` updated by one: so many times that of the loss on one device.

    `against` is the loss that the function returns, empty where it returns none: then a multiple may be meant.
    `makers` are the equations between the backward pass and the result, the last one first.
    """

    path: str
    argument: str
    factor: float
    against: str
    makers: tuple[EquationPlace, ...]


def scaled_gradients(capture: Capture, flow: JaxprFlow) -> Iterator[ScaledGradient]:
    """Yield the gradients that have another factor than every loss that is returned.

    A loss is a scalar that no backward pass computes; that of a gradient is one that is computed in the same call.
    Where it is off by no factor (random numbers of each device, for one), nothing is known of its gradients.
    """
    reference, ran = capture.reference, capture.execution
    if reference is None or reference.undefined is not None or reference.left_out or ran is None:
        return
    apart = {each.position: each for each in reference.differs if each.when == "output"}
    gradients: list[tuple[int, tuple[EquationPlace, ...]]] = []
    losses: list[tuple[int, frozenset[str]]] = []
    for number, (output, name) in enumerate(zip(ran.outputs, flow.jaxprs[0].outputs, strict=False)):
        if output.projections is None or output.minimum is None:
            continue
        makers = tuple(flow.makers(At(0, name), flow.is_backward))
        is_backward = any(map(flow.is_backward, makers))
        if is_backward and not _is_scalar(output.type):
            gradients.append((number, makers))
        elif not is_backward and _is_scalar(output.type):
            losses.append((number, frozenset(place.id for place in makers)))
    factors = {number: apart[number].factor if number in apart else 1.0 for number in range(len(ran.outputs))}
    for number, makers in gradients:
        ids = {place.id for place in makers}
        own = [loss for loss, of in losses if of & ids] or [loss for loss, _ in losses]
        factor, known = factors[number], [factors[loss] for loss in own] or [1.0]
        if factor is None or None in known or any(_is_close(factor, each) for each in known):
            continue
        against = ran.outputs[own[0]].path if own else ""
        argument = apart[number].argument if number in apart else ""
        yield ScaledGradient(ran.outputs[number].path, argument, factor / (known[0] or 1.0), against, makers)


def _is_close(one: float, other: float | None) -> bool:
    return other is not None and math.isclose(one, other, rel_tol=RESULT_TOLERANCE)


def _is_scalar(type: str) -> bool:
    return type.partition("[")[2].startswith("]")
