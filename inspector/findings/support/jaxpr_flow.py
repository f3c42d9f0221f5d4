"""Paths of a jaxpr's values, through calls into their bodies and out again."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ....parsers.record import Record
from ...ir.derived import derived
from ...ir.jaxpr_flow import At as At
from ...ir.jaxpr_flow import JaxprFlow
from ...ir.jaxpr_text import EquationPlace, JaxprText
from ...report import FindingPlace, Report, SourcePosition

MAX_STEPS = 10_000
"""Uses that are followed from one value."""


class Use(Record, frozen=True):
    """An equation that takes a value as its operand of that position."""

    place: EquationPlace
    position: int
    calls: tuple[EquationPlace, ...]


class Flow(JaxprFlow):
    """Definitions and uses of all values, by jaxpr and name."""

    def uses(self, value: At, *, carried: bool = False) -> Iterator[Use | At | None]:
        """Each use of a value; the value that it is elsewhere, in a body or behind a call; None where it escapes.

        What a scan carries is followed, where that is wanted, into the next iteration and behind the loop.
        """
        for place, position in self.used.get((value.jaxpr, value.name), ()):
            bodies = tuple(self.inside(place, position))
            for body, name in bodies:
                yield At(body, name, (*value.calls, place))
            if not bodies:
                yield Use(place, position, value.calls)
        for position in self.returned.get((value.jaxpr, value.name), ()):
            yield from self._returned(value, position, carried)

    def _returned(self, value: At, position: int, carried: bool) -> Iterator[At | None]:
        calls = value.calls[-1:] or tuple(self.callers.get(value.jaxpr, ()))
        for call in calls:
            outputs, loop = call.equation.outputs, call.equation.loop
            is_carried = carried and call.equation.primitive == "scan" and loop is not None and position < loop[1]
            if is_carried and loop is not None:
                yield At(value.jaxpr, self.jaxprs[value.jaxpr].inputs[loop[0] + position].name, value.calls)
            if (is_carried or self.body(call) == value.jaxpr) and position < len(outputs):
                yield At(call.jaxpr, outputs[position].name, value.calls[:-1])
            else:
                yield None
        if not calls:
            yield None

    def result_of(self, value: At) -> int | None:
        """Return which result of the program a value is, through calls; None where it is none."""
        for _ in range(len(self.jaxprs)):
            outputs, calls = list(self.jaxprs[value.jaxpr].outputs), self.callers.get(value.jaxpr, ())
            if value.name not in outputs or len(calls) > 1:
                return None
            position = outputs.index(value.name)
            if not calls:
                return position
            if self.body(calls[0]) != value.jaxpr:
                return None
            value = At(calls[0].jaxpr, calls[0].equation.outputs[position].name)
        return None

    def place(self, place: EquationPlace) -> FindingPlace:
        """An equation as what a finding is about."""
        outputs = " ".join(output.name for output in place.equation.outputs) or "_"
        return FindingPlace(f"{outputs} = {place.equation.primitive}", self.source(place), "jaxpr", place.span)

    def source(self, place: EquationPlace) -> SourcePosition:
        """The lines that an equation comes from."""
        stack = self.text.stack(place.equation)
        return SourcePosition(stack, "exact" if stack else "none")


def flow_of(report: Report) -> Flow | None:
    """The flow of a report's jaxpr; None where there is none."""
    text = report.program.jaxpr
    return None if text is None else _flow(text)


def equations_of(report: Report, primitives: Collection[str]) -> Iterator[tuple[Flow, EquationPlace]]:
    """The equations of some primitives, in text order, with the flow of their jaxpr."""
    flow = flow_of(report)
    for place in flow.text.equations if flow else ():
        if flow is not None and place.equation.primitive in primitives:
            yield flow, place


@derived
def _flow(text: JaxprText) -> Flow:
    return Flow(text)
