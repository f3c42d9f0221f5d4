"""Values of a jaxpr and their uses, through calls into their bodies and out again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ...parsers.record import Record
from ..catalog.spellings import CALLED, CALLS, SCOPES
from ..ir.derived import derived
from ..ir.jaxpr import literal_in
from ..ir.jaxpr_text import EquationPlace, JaxprText, JaxprUses
from ..ir.types import JaxType
from ..report import FindingPlace, SourcePosition
from .graph import AnyUse, Output
from .meaning import Does, meaning_of

Calls = tuple[EquationPlace, ...]
"""The calls through which one came into a body, outermost first."""


class At(Record, frozen=True):
    """A value: its name in one jaxpr, reached through some calls."""

    jaxpr: int
    name: str
    calls: Calls = ()


class Use(AnyUse, frozen=True):
    """An equation that takes a value as its operand of that position."""

    place: EquationPlace
    position: int
    calls: tuple[EquationPlace, ...]


class JaxprFlow(JaxprUses):
    """Definitions and uses of all values, by jaxpr and name."""

    def __init__(self, text: JaxprText) -> None:
        super().__init__(text)
        self.text = text
        self.jaxprs = text.program.jaxprs
        self.by_id = {place.id: place for place in text.equations}
        self.callers: dict[int, list[EquationPlace]] = {}
        for place in text.equations:
            for body in dict.fromkeys(body for _, body in place.equation.bodies):
                self.callers.setdefault(body, []).append(place)
        self.positions = {
            (jaxpr, each.name): n for jaxpr, one in enumerate(self.jaxprs) for n, each in enumerate(one.inputs)
        }
        self.returned: dict[tuple[int, str], list[int]] = {}
        for number, jaxpr in enumerate(self.jaxprs):
            for position, name in enumerate(jaxpr.outputs):
                self.returned.setdefault((number, name), []).append(position)

    def body(self, place: EquationPlace) -> int | None:
        """The body of a call whose inputs are the call's own operands."""
        if place.equation.primitive not in CALLS:
            return None
        bodies = dict(place.equation.bodies)
        found = next((bodies[name] for name in CALLED if name in bodies), None)
        if found is None or len(self.jaxprs[found].inputs) != len(place.equation.inputs):
            return None
        return found

    def inside(self, place: EquationPlace, position: int) -> Iterator[tuple[int, str]]:
        """The bodies in which an operand is the same value all along, and its name there."""
        bodies = dict(place.equation.bodies)
        match place.equation.primitive, place.equation.loop:
            case "scan", (constants, carried) if "jaxpr" in bodies and position < constants + carried:
                yield from self._in_loop(bodies["jaxpr"], position, constants)
            case "while", (of_condition, of_body) if {"cond_jaxpr", "body_jaxpr"} <= bodies.keys():
                if position < of_condition:
                    yield from self._input(bodies["cond_jaxpr"], position)
                    return
                found = tuple(self._in_loop(bodies["body_jaxpr"], position - of_condition, of_body))
                yield from found
                if found and position >= of_condition + of_body:
                    yield from self._input(bodies["cond_jaxpr"], position - of_body)
            case "cond", _ if position > 0:
                for body in bodies.values():
                    yield from self._input(body, position - 1)
            case primitive, _ if primitive in SCOPES:
                for body in bodies.values():
                    captured = self.jaxprs[body].constants
                    if len(captured) == len(place.equation.inputs):
                        yield body, captured[position].name
            case _:
                called = self.body(place)
                if called is not None:
                    yield from self._input(called, position)

    def _in_loop(self, body: int, position: int, constants: int) -> Iterator[tuple[int, str]]:
        """The input of a loop's body that is one of its constants, or that each iteration hands on unchanged."""
        for _, name in self._input(body, position):
            if position < constants or self.jaxprs[body].outputs[position - constants :][:1] == (name,):
                yield body, name

    def _input(self, body: int, position: int) -> Iterator[tuple[int, str]]:
        for variable in self.jaxprs[body].inputs[position : position + 1]:
            yield body, variable.name

    def operand(self, value: At) -> At | None:
        """Return the operand of a call for an input of its body; None where it is not a single one."""
        calls = value.calls[-1:] or tuple(self.callers.get(value.jaxpr, ()))
        if len(calls) != 1:
            return None
        for position, name in enumerate(calls[0].equation.inputs):
            if (value.jaxpr, value.name) in self.inside(calls[0], position):
                return At(calls[0].jaxpr, name, value.calls[:-1])
        return None

    def outer(self, value: At) -> At | None:
        """Return the outer value of a body's input: over all iterations, or over all devices."""
        position = self.positions.get((value.jaxpr, value.name))
        calls = value.calls[-1:] or tuple(self.callers.get(value.jaxpr, ()))
        if position is None or len(calls) != 1:
            return None
        equation = calls[0].equation
        match equation.primitive, equation.loop:
            case "scan", (constants, carried) if not constants <= position < constants + carried:
                pass
            case "while", (of_condition, of_body):
                is_body = dict(equation.bodies).get("body_jaxpr") == value.jaxpr
                if position >= (of_body if is_body else of_condition):
                    return None
                position += of_condition if is_body else 0
            case "shard_map", _:
                pass
            case _:
                return self.operand(value)
        inputs = equation.inputs
        return At(calls[0].jaxpr, inputs[position], value.calls[:-1]) if position < len(inputs) else None

    def makers(self, value: At, last: Callable[[EquationPlace], bool]) -> Iterator[EquationPlace]:
        """Yield the equations that a value is computed by, nearest first, in bodies and before their calls too.

        What those that are the `last` are computed by is not followed.
        """
        waiting, seen = [value], {(value.jaxpr, value.name)}
        for current in waiting:
            made = self.made.get((current.jaxpr, current.name))
            if made is None:
                outer = self.outer(At(current.jaxpr, current.name))
                callers = self.callers.get(current.jaxpr, ())
                everything = [each for caller in callers for each in self.operands(caller)]
                operands = everything if outer is None else [(outer.jaxpr, outer.name)]
            else:
                place, position = made
                yield place
                bodies = [body for _, body in place.equation.bodies]
                if last(place):
                    continue
                operands = [] if bodies else list(self.operands(place))
                for body in bodies:
                    outputs = self.jaxprs[body].outputs
                    if len(outputs) == len(place.equation.outputs):
                        outputs = outputs[position : position + 1]
                    operands += [(body, name) for name in outputs]
            fresh = [each for each in dict.fromkeys(operands) if each not in seen]
            seen.update(fresh)
            waiting += [At(*each) for each in fresh]

    def type_of(self, value: At) -> JaxType | None:
        """The type of a value."""
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
        """Return whether an equation is in a transposed function; the caller of its body has the mark."""
        return any("transpose(" in each.equation.name_stack for each in self.around(place))

    def shard_map_around(self, place: EquationPlace) -> EquationPlace | None:
        """The innermost shard_map that an equation stands in."""
        return next((each for each in self.around(place) if each.equation.shard_map is not None), None)

    def does(self, use: Use) -> Does:
        """Return what an equation does with its operand."""
        return meaning_of(use.place.equation.primitive).of(use.position)

    def after(self, use: Use) -> tuple[At, ...]:
        """The equation's results that are made of that operand."""
        equation, outputs = use.place.equation, use.place.equation.outputs
        if len(outputs) == len(equation.inputs) > 1 and self.does(use) is Does.FORWARD:
            outputs = outputs[use.position : use.position + 1]  # a barrier's, each of one operand
        return tuple(At(use.place.jaxpr, output.name, use.calls) for output in outputs)

    def uses(self, value: At, *, carried: bool = False) -> Iterator[Use | At | Output | None]:
        """Yield each use of a value, or the value that it is elsewhere; None where it escapes.

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

    def _returned(self, value: At, position: int, carried: bool) -> Iterator[At | Output | None]:
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
            yield Output((position,)) if value.jaxpr == 0 else None

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
        return FindingPlace(f"{outputs} = {place.equation.primitive}", self.source(place), "jaxpr", span=place.span)

    def source(self, place: EquationPlace) -> SourcePosition:
        """The lines that an equation comes from."""
        stack = self.text.stack(place.equation)
        return SourcePosition(stack, "exact" if stack else "none")


class GlobalFlow(JaxprFlow):
    """The same, through shard_maps too: a block of a value is followed as the value."""

    def __init__(self, flow: JaxprFlow) -> None:
        vars(self).update(vars(flow))

    def body(self, place: EquationPlace) -> int | None:
        """The body of a call, or of a shard_map, whose inputs are its own operands."""
        bodies = [body for _, body in place.equation.bodies] if place.equation.shard_map is not None else []
        if len(bodies) == 1 and len(self.jaxprs[bodies[0]].inputs) == len(place.equation.inputs):
            return bodies[0]
        return super().body(place)


@derived
def global_flow_of(text: JaxprText) -> GlobalFlow:
    """The definitions and uses of a program's values, through shard_maps too."""
    return GlobalFlow(flow_of(text))


@derived
def flow_of(text: JaxprText) -> JaxprFlow:
    """The definitions and uses of a program's values."""
    return JaxprFlow(text)


def divides(place: EquationPlace, position: int, number: int) -> bool:
    """Return whether an equation divides an operand by a number, or multiplies it by its inverse."""
    equation = place.equation
    is_quotient = equation.primitive == "div" and position == 0
    if not is_quotient and equation.primitive != "mul":
        return False
    try:
        factor = float(literal_in(equation.inputs[1 - position]) or "")
    except ValueError:  # what is no number, or one that newer JAX prints with its type
        return False
    return math.isclose(factor / number if is_quotient else factor * number, 1, rel_tol=1e-6)
