"""Sums that the program writes: of results of its backward pass, or only to divide them by the number of devices."""

from __future__ import annotations

import math

from ..catalog.spellings import primitives_of
from ..dataflow.jaxpr import At, JaxprFlow
from ..dataflow.meaning import POINTWISE, SAME, STRAIGHT, Does, does
from ..ir.jaxpr import literal_in
from ..ir.jaxpr_text import EquationPlace

HANDED_ON = SAME | Does.REPEAT | Does.SLICE
"""Operations whose result is their first operand in another form, or a part of it."""

GATHERS = primitives_of("all-gather")
"""Primitives that bring its blocks together."""

MAX_STEPS = 40
"""Equations that are followed back to an argument."""

ELEMENTWISE = POINTWISE | Does.SUM
"""Operations of optimizers on gradients, and those that sum gradients."""


def is_handed_on(place: EquationPlace, also: Does = STRAIGHT) -> bool:
    """Return whether an equation hands its operand on, in one device's blocks or as a whole, or is of another class."""
    primitive = place.equation.primitive
    return primitive in GATHERS or not does(primitive) & ~(HANDED_ON | also)


def is_of_gradients(flow: JaxprFlow, place: EquationPlace) -> bool:
    """Return whether all operands are results of a backward pass, in whatever form: XLA may lose the names of these."""
    return bool(place.equation.inputs) and all(
        _is_from_backward(flow, At(place.jaxpr, name)) for name in place.equation.inputs
    )


def _is_from_backward(flow: JaxprFlow, value: At) -> bool:
    waiting, seen = [value], {value}
    while waiting and len(seen) < MAX_STEPS:
        made = flow.made.get((waiting[-1].jaxpr, waiting.pop().name))
        if made is None:
            continue
        place, position = made
        if flow.is_backward(place):
            return True
        body = flow.body(place)
        if body is not None and position < len(flow.jaxprs[body].outputs):
            before = [At(body, flow.jaxprs[body].outputs[position])]
        else:
            known = is_handed_on(place, ELEMENTWISE)
            before = [At(place.jaxpr, name) for name in place.equation.inputs] if known else []
        waiting += [each for each in before if each not in seen]
        seen.update(before)
    return False


def averages(flow: JaxprFlow, place: EquationPlace) -> bool:
    """Return whether all uses divide each result of a sum by the number of devices, as `pmean` does."""
    mapped, axes = flow.shard_map_around(place), place.equation.axes
    sizes = {} if mapped is None or mapped.equation.shard_map is None else dict(mapped.equation.shard_map.sizes)
    if axes is None or not sizes.keys() >= set(axes):
        return False
    devices = math.prod(sizes[axis] for axis in axes)
    uses = [flow.used.get((place.jaxpr, output.name), ()) for output in place.equation.outputs]
    return devices > 1 and all(each and all(_divides(*use, devices) for use in each) for each in uses)


def _divides(place: EquationPlace, position: int, number: int) -> bool:
    """Return whether an equation divides an operand by a number, or multiplies it by its inverse."""
    equation = place.equation
    other = literal_in(equation.inputs[1 - position]) if equation.primitive in ("div", "mul") else None
    factor = None if other is None else _number(other)
    if factor is None or (equation.primitive == "div" and position == 1):
        return False
    return math.isclose(factor if equation.primitive == "div" else 1 / (factor or math.inf), number, rel_tol=1e-6)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
