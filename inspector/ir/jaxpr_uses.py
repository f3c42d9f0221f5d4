"""Definitions and uses in the bodies of a jaxpr."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .jaxpr_text import EquationPlace, JaxprText

Value = tuple[int, str]
"""The index of a jaxpr, and the name of a variable in it."""


class JaxprUses:
    """`made` and `used` are by value: its equation, and the equations that take it, each with its position there."""

    def __init__(self, text: JaxprText) -> None:
        self.made: dict[Value, tuple[EquationPlace, int]] = {}
        self.used: dict[Value, list[tuple[EquationPlace, int]]] = {}
        for place in text.equations:
            for position, value in enumerate(self.results(place)):
                self.made[value] = place, position
            for position, value in enumerate(self.operands(place)):
                self.used.setdefault(value, []).append((place, position))

    def definition(self, value: Value) -> EquationPlace | None:
        """The equation that makes a value; None for what a body is given."""
        return self.made[value][0] if value in self.made else None

    def operands(self, place: EquationPlace) -> tuple[Value, ...]:
        """The operands of an equation; among them literals, which nothing makes."""
        return tuple((place.jaxpr, name) for name in place.equation.inputs)

    def results(self, place: EquationPlace) -> tuple[Value, ...]:
        """The values that an equation makes."""
        return tuple((place.jaxpr, output.name) for output in place.equation.outputs)

    def users_of(self, values: Collection[Value]) -> Mapping[Value, tuple[EquationPlace, ...]]:
        """For each value the equations that take it, in the order in which they print."""
        return {value: tuple(dict.fromkeys(place for place, _ in self.used.get(value, ()))) for value in values}
