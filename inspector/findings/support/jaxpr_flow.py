"""Where the values of a jaxpr go, through calls into their bodies and out again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ...catalog.spellings import CALLED, CALLS
from ...ir.derived import derived
from ...ir.jaxpr_text import EquationPlace, JaxprText, JaxprUses
from ...report import FindingPlace, Report, SourcePosition

MAX_STEPS = 10_000
"""Uses that are followed from one value."""

Calls = tuple[EquationPlace, ...]
"""The calls through which one came into a body, outermost first."""


@dataclass(frozen=True, slots=True)
class At:
    """A value: its name in one jaxpr, reached through some calls."""

    jaxpr: int
    name: str
    calls: Calls = ()


@dataclass(frozen=True, slots=True)
class Use:
    """An equation that takes a value as its operand of that position."""

    place: EquationPlace
    position: int
    calls: Calls


class Flow(JaxprUses):
    """Definitions and uses of all values, by jaxpr and name."""

    def __init__(self, text: JaxprText) -> None:
        super().__init__(text)
        self.text = text
        self.jaxprs = text.program.jaxprs
        self.by_id = {place.id: place for place in text.equations}
        self.callers: dict[int, list[EquationPlace]] = {}
        for place in text.equations:
            for _, body in place.equation.bodies:
                self.callers.setdefault(body, []).append(place)

    def body(self, place: EquationPlace) -> int | None:
        """The body of a call whose inputs are the call's own operands."""
        if place.equation.primitive not in CALLS:
            return None
        bodies = dict(place.equation.bodies)
        found = next((bodies[name] for name in CALLED if name in bodies), None)
        if found is None or not 0 < found < len(self.jaxprs):
            return None
        return found if len(self.jaxprs[found].inputs) == len(place.equation.inputs) else None

    def inside(self, place: EquationPlace, position: int) -> Iterator[tuple[int, int]]:
        """The bodies in which an operand is the same value all along, and which of their inputs it is there."""
        bodies = dict(place.equation.bodies)
        match place.equation.primitive, place.equation.loop:
            case "scan", (constants, _) if "jaxpr" in bodies and position < constants:
                found = [(bodies["jaxpr"], position)]
            case "cond", _ if position > 0:
                found = [(body, position - 1) for body in bodies.values()]
            case _:
                body = self.body(place)
                found = [] if body is None else [(body, position)]
        yield from (
            (body, index)
            for body, index in found
            if 0 < body < len(self.jaxprs) and index < len(self.jaxprs[body].inputs)
        )

    def uses(self, value: At, *, carried: bool = False) -> Iterator[Use | At | None]:
        """Each use of a value; the value that it is elsewhere, in a body or behind a call; None where it escapes.

        What a scan carries is followed, where that is wanted, into the next iteration and behind the loop.
        """
        for place, position in self.used.get((value.jaxpr, value.name), ()):
            bodies = tuple(self.inside(place, position))
            for body, index in bodies:
                yield At(body, self.jaxprs[body].inputs[index].name, (*value.calls, place))
            if not bodies:
                yield Use(place, position, value.calls)
        for position, name in enumerate(self.jaxprs[value.jaxpr].outputs):
            if name == value.name:
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

    def operand(self, value: At) -> At | None:
        """What an input of a body is where the body is called; None where that is not one thing."""
        names = [variable.name for variable in self.jaxprs[value.jaxpr].inputs]
        calls = value.calls[-1:] or tuple(self.callers.get(value.jaxpr, ()))
        if value.name not in names or len(calls) != 1:
            return None
        inner = (value.jaxpr, names.index(value.name))
        for position, name in enumerate(calls[0].equation.inputs):
            if inner in self.inside(calls[0], position):
                return At(calls[0].jaxpr, name, value.calls[:-1])
        return None

    def type_of(self, value: At) -> str | None:
        """The type of a value, as JAX prints it."""
        made = self.made.get((value.jaxpr, value.name))
        if made is not None:
            return made[0].equation.outputs[made[1]].type
        inputs = (*self.jaxprs[value.jaxpr].inputs, *self.jaxprs[value.jaxpr].constants)
        return next((variable.type for variable in inputs if variable.name == value.name), None)

    def around(self, place: EquationPlace) -> Iterator[EquationPlace]:
        """An equation, and all those in whose bodies it stands, whoever calls them."""
        seen = {place.id}
        waiting = [place]
        while waiting:
            inner = waiting.pop()
            yield inner
            for caller in self.callers.get(inner.jaxpr, ()):
                if caller.id not in seen:
                    seen.add(caller.id)
                    waiting.append(caller)

    def is_backward(self, place: EquationPlace) -> bool:
        """Whether an equation stands in what JAX made by transposing; it says so where the body is called."""
        return any("transpose(" in each.equation.name_stack for each in self.around(place))

    def shard_map_around(self, place: EquationPlace) -> EquationPlace | None:
        """The innermost shard_map that an equation stands in."""
        return next((each for each in self.around(place) if each.equation.shard_map is not None), None)

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
