"""The values of a report's jaxpr."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ...dataflow.jaxpr import At, JaxprFlow, Use
from ...dataflow.jaxpr import flow_of as flow_of_text
from ...ir.jaxpr import literal_in
from ...ir.jaxpr_text import EquationPlace
from ...report import Report

__all__ = ("MAX_STEPS", "At", "Flow", "Use", "equations_of", "flow_of", "is_alone")

Flow = JaxprFlow

MAX_STEPS = 10_000
"""Uses that are followed from one value."""


def flow_of(report: Report) -> Flow | None:
    """The flow of a report's jaxpr; None where there is none."""
    text = report.program.jaxpr
    return None if text is None else flow_of_text(text)


def is_alone(flow: Flow, use: Use) -> bool:
    """Return whether the other operands of an equation are single numbers, or the same value."""
    names = set(use.place.equation.inputs) - {use.place.equation.inputs[use.position]}
    types = [flow.type_of(At(use.place.jaxpr, name, use.calls)) for name in names if literal_in(name) is None]
    return all(type is not None and type.array.shape == () for type in types)


def equations_of(report: Report, primitives: Collection[str]) -> Iterator[tuple[Flow, EquationPlace]]:
    """The equations of some primitives, in text order, with the flow of their jaxpr."""
    flow = flow_of(report)
    for place in flow.text.equations if flow else ():
        if flow is not None and place.equation.primitive in primitives:
            yield flow, place
