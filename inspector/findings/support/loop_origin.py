"""The equation and the iteration of a loop in which devices begin to differ, of what the loop carries out."""

from __future__ import annotations

from typing import NamedTuple

from ...ir.jaxpr_text import EquationPlace
from ...report import Divergence, Report
from .jaxpr_flow import Flow

Iteration = tuple[int, ...]


class LoopOrigin(NamedTuple):
    """The value that is the first to differ, of those that were recorded, and the iteration."""

    place: EquationPlace
    name: str
    iteration: Iteration


def loop_origin(report: Report, flow: Flow, found: Divergence) -> LoopOrigin | None:
    """Return where a result of a loop begins to differ; None if that is no loop's, or differs from the beginning on."""
    place = flow.by_id[found.equation]
    position = next((n for n, each in enumerate(place.equation.outputs) if each.name == found.value), -1)
    if position < 0 or place.equation.loop is None:
        return None
    first: dict[tuple[str, int], set[Iteration]] = {}
    for compared in report.capture.compared:
        for difference in compared.differs if compared.path else ():
            if difference.axis == found.axis and found.equation in compared.path[:-1]:
                first.setdefault((compared.path[-1], compared.position), set()).add(difference.iteration)
    body = flow.jaxprs[place.equation.bodies[-1][1]]
    at = (place.equation.bodies[-1][1], body.outputs[position]) if position < len(body.outputs) else None
    origin = None
    while at is not None and at in flow.made:
        made, number = flow.made[at]
        iterations = first.get((made.id, number), set())
        if len(iterations) != 1 or (origin is not None and iterations != {origin.iteration}):
            break
        (iteration,) = iterations
        origin = LoopOrigin(made, at[1], iteration)
        operands = [(at[0], name) for name in made.equation.inputs]
        at = next((each for each in operands if _first(flow, first, each) == iteration), None)
    return origin if origin is not None and origin.iteration[-1:] > (0,) else None


def _first(flow: Flow, first: dict[tuple[str, int], set[Iteration]], value: tuple[int, str]) -> Iteration | None:
    if value not in flow.made:
        return None
    place, number = flow.made[value]
    return next(iter(first.get((place.id, number), ())), None)
