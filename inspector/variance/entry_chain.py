"""The path of an axis into a value: from where it enters, equation by equation."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.derived import derived
from ..ir.jaxpr_text import EquationPlace, JaxprText
from ..report import AxisEntry, VariableVariance
from .variables import variance_of

Key = tuple[int, str]
"""A value: the number of its jaxpr, and its name there."""


class EntryChains:
    """The values inside shard_maps, with the axes that each has, and what each is made of."""

    def __init__(self, text: JaxprText) -> None:
        self._places = {place.id: place for place in text.equations}
        self._made = {(place.jaxpr, out.name): place for place in text.equations for out in place.equation.outputs}
        self._bodies = {body: place for place in text.equations for _, body in place.equation.bodies}
        self._inputs = {
            (number, variable.name): index
            for number, jaxpr in enumerate(text.program.jaxprs)
            for index, variable in enumerate(jaxpr.inputs)
        }
        self._values: dict[Key, VariableVariance] = {}
        for value in variance_of(text):
            self._values[self._places[value.equation].jaxpr, value.value] = value

    def of(self, value: VariableVariance, entry: AxisEntry) -> tuple[VariableVariance, ...]:
        """The shortest way from where an axis entered to a value, which is its last; the value alone if none is known.

        What a loop hands on from one iteration to the next is not followed.
        """
        start = self._places[value.equation].jaxpr, value.value
        if self._values[start] is not value:
            return (value,)  # older JAX calls all values that are not used `_`
        before: dict[Key, Key | None] = {start: None}
        waiting = list(before)
        for key in waiting:
            if self._begins(key, entry):
                return self._way(key, before)
            for operand in self._operands(key, entry.axis):
                if operand not in before:
                    before[operand] = key
                    waiting.append(operand)
        return (value,)

    def _begins(self, key: Key, entry: AxisEntry) -> bool:
        """Return whether the axis enters here: in this equation, or with this input of a shard_map."""
        place = self._made.get(key)
        if place is not None:
            return place.id == entry.equation
        around = self._bodies.get(key[0])
        return around is not None and around.id == entry.equation and self._inputs.get(key) == entry.input

    def _operands(self, key: Key, axis: str) -> Iterator[Key]:
        place = self._made.get(key)
        names = self._outside(key) if place is None else [(place.jaxpr, name) for name in place.equation.inputs]
        for operand in names:
            value = self._values.get(operand)
            if operand in self._inputs or (value is not None and _has(value, axis)):
                yield operand

    def _outside(self, key: Key) -> list[Key]:
        around = self._bodies.get(key[0])
        first = None if around is None else _first_operand(around)
        if around is None or first is None:
            return []
        index, operands = first + self._inputs[key], around.equation.inputs
        return [(around.jaxpr, operands[index])] if index < len(operands) else []

    def _way(self, key: Key, before: dict[Key, Key | None]) -> tuple[VariableVariance, ...]:
        way: list[VariableVariance] = []
        at: Key | None = key
        while at is not None:
            way += [self._values[at]] if at in self._values else []
            at = before[at]
        return tuple(way)


def _has(value: VariableVariance, axis: str) -> bool:
    return axis in (*value.varying, *value.unreduced, *value.reduced, *value.hidden)


def _first_operand(around: EquationPlace) -> int | None:
    """Return which operand is the first input of a body; None if these are in another order."""
    match around.equation.primitive:
        case "while":
            return None
        case "cond":
            return 1
    return 0


@derived
def entry_chains(text: JaxprText) -> EntryChains:
    """The ways of the axes in a program."""
    return EntryChains(text)
