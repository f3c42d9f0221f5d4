"""Variance of each equation's output: as JAX types it, or inferred, with where each axis entered and left."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.derived import derived
from ..ir.jaxpr import Variable
from ..ir.jaxpr_text import EquationPlace, JaxprText
from ..report import AxisEntry, SourcePosition, VariableVariance
from .held import Held, Value, axes_of, join
from .inference import infer


@derived
def variance_of(text: JaxprText) -> tuple[VariableVariance, ...]:
    """Variance of the results of each equation inside a shard_map, in the order in which the equations print."""
    return tuple(_Variables(text).all())


class _Variables:
    def __init__(self, text: JaxprText) -> None:
        self.text = text
        self.places = {place.id: place for place in text.equations}
        self.typed = infer(text, "types")
        self.real = infer(text, "values")

    def all(self) -> Iterator[VariableVariance]:
        for place in self.text.equations:
            for number, output in enumerate(place.equation.outputs):
                if place.id in self.real.results:
                    yield self.one(place, number, output)
                elif output.varying is not None:  # captures once recorded no shard_maps, only their types
                    yield self.declared(place, output)

    def one(self, place: EquationPlace, number: int, output: Variable) -> VariableVariance:
        inferred = output.varying is None
        values = self.real.results[place.id][number]
        reading = self.real if inferred else self.typed
        shown = reading.results[place.id][number]
        varying, unreduced, reduced = _inferred(values) if inferred else _declared(output)
        stated = {*varying, *unreduced, *reduced}
        hidden = tuple(held for held in values if held.axis not in stated)
        kept = {held.axis for held in shown}
        return VariableVariance(
            equation=place.id,
            primitive=place.equation.primitive,
            value=output.name,
            type=output.type,
            varying=varying,
            unreduced=unreduced,
            reduced=reduced,
            source=self.source(place),
            inferred=inferred,
            hidden=tuple(held.axis for held in hidden),
            entered=tuple(map(self.entry, (*shown, *hidden))),
            left=tuple(held.axis for held in join(reading.operands[place.id]) if held.axis not in kept),
        )

    def declared(self, place: EquationPlace, output: Variable) -> VariableVariance:
        return VariableVariance(
            place.id, place.equation.primitive, output.name, output.type, *_declared(output), self.source(place)
        )

    def entry(self, held: Held) -> AxisEntry:
        equation, number = held.entered
        place = self.places[equation]
        mapped = place.equation.shard_map
        spec = "in_specs" if mapped is None or number is None else mapped.in_spec(number)
        return AxisEntry(held.axis, equation, place.equation.primitive, self.source(place), number, spec)

    def source(self, place: EquationPlace) -> SourcePosition:
        return SourcePosition.exact(self.text.stack(place.equation))


Axes = tuple[str, ...]


def _declared(variable: Variable) -> tuple[Axes, Axes, Axes]:
    return variable.varying or (), variable.unreduced or (), variable.reduced or ()


def _inferred(value: Value) -> tuple[Axes, Axes, Axes]:
    return axes_of(value, "varying"), axes_of(value, "unreduced"), axes_of(value, "reduced")
