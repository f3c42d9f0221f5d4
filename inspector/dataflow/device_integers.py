"""Integers that a device computes from its mesh coordinates."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from ..catalog.spellings import SCOPES, rule_of
from ..ir.jaxpr import literal_in
from ..ir.jaxpr_text import EquationPlace
from .jaxpr import At, JaxprFlow

MAX_EVALUATED = 2_000
"""Equations that are evaluated for one number; a crafted program may share operands without end."""

MAX_DEPTH = 100
"""Equations one behind the other; Python's own stack ends at about three times as many."""

LARGEST_INTEGER = 1 << 31
"""Range of int32, in which programs number devices: what is beyond it wraps around, and is not followed."""

BINARY: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "max": max,
    "min": min,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
    "rem": lambda a, b: a - b * int(a / b),
    "div": lambda a, b: int(a / b),
}

SAME = frozenset(("convert_element_type", "squeeze", "reshape", "broadcast_in_dim", "copy", "stop_gradient"))
"""Operations that do not change a number."""

_LITERAL = re.compile(r"(?:Typed\w+\()?(-?\d{1,18}|True|False)(?:, dtype=\w+\))?")
"""`2`, or `TypedInt(2, dtype=int32)` since JAX 0.12."""


@dataclass(slots=True)
class Numbers:
    """Evaluates integers on one device: `coordinates` along the mesh axes of the given `sizes`."""

    flow: JaxprFlow
    sizes: Mapping[str, int]
    coordinates: Mapping[str, int]
    left: int = field(default=MAX_EVALUATED)
    depth: int = 0

    def value(self, at: At) -> int | None:
        """The number; None where it depends on anything else."""
        self.left -= 1
        if self.left < 0 or self.depth == MAX_DEPTH:
            return None
        self.depth += 1
        found = self._value(at)
        self.depth -= 1
        return None if found is None or abs(found) >= LARGEST_INTEGER else found

    def _value(self, at: At) -> int | None:
        literal = literal_in(at.name)
        if literal is not None:
            return _number(literal)
        made = self.flow.made.get((at.jaxpr, at.name))
        if made is not None:
            return self._result(*made, at)
        operand = self.flow.operand(at)
        return None if operand is None else self.value(operand)

    def _result(self, place: EquationPlace, position: int, at: At) -> int | None:
        equation = place.equation
        body = self._body(place, at)
        if body is not None:
            outputs = self.flow.jaxprs[body].outputs
            return self.value(At(body, outputs[position], (*at.calls, place))) if position < len(outputs) else None
        if equation.loop is not None:
            carried = sum(equation.loop) if equation.primitive == "while" else equation.loop[0]
            is_unchanged = any(self.flow.inside(place, carried + position))
            return self.value(At(at.jaxpr, equation.inputs[carried + position], at.calls)) if is_unchanged else None
        if equation.primitive == "axis_index":
            return self._position(equation.axes)
        operands = [self.value(At(at.jaxpr, name, at.calls)) for name in equation.inputs]
        known = [operand for operand in operands if operand is not None]
        return _apply(equation.primitive, known) if len(known) == len(operands) else None

    def _body(self, place: EquationPlace, at: At) -> int | None:
        """The body whose outputs are the results of an equation, on this device."""
        bodies = [body for _, body in place.equation.bodies]
        if place.equation.primitive == "cond" and place.equation.inputs:
            taken = self.value(At(at.jaxpr, place.equation.inputs[0], at.calls))
            return bodies[taken] if taken is not None and 0 <= taken < len(bodies) else None
        return bodies[0] if place.equation.primitive in SCOPES and len(bodies) == 1 else self.flow.body(place)

    def _position(self, axes: tuple[str, ...] | None) -> int | None:
        is_known = axes is not None and self.coordinates.keys() >= set(axes)
        return position(self.coordinates, axes or (), self.sizes) if is_known else None


def position(coordinates: Mapping[str, int], axes: Iterable[str], sizes: Mapping[str, int]) -> int:
    """Return the number of a device in row-major order of some axes, as `coordinates` yields them."""
    number = 0
    for axis in axes:
        number = number * sizes[axis] + coordinates[axis]
    return number


def _apply(primitive: str, operands: list[int]) -> int | None:
    rule = rule_of(primitive)
    match primitive, operands:
        case name, [value] if name in SAME or (rule is not None and rule.is_cast):
            return value
        case "neg", [value]:
            return -value
        case "select_n", [which, *cases] if 0 <= which < len(cases):
            return cases[which]
        case "clamp", [low, value, high]:
            return min(max(low, value), high)
        case "div" | "rem", [_, 0]:
            return None
        case name, [one, other] if name in BINARY:
            return int(BINARY[name](one, other))
    return None


def _number(literal: str) -> int | None:
    found = _LITERAL.fullmatch(literal)
    if found is None:
        return None
    return int(found[1] == "True") if found[1] in ("True", "False") else int(found[1])


def coordinates(axes: Sequence[str], sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Return the coordinates of devices along some axes, major to minor."""
    for at in product(*(range(sizes[axis]) for axis in axes)):
        yield dict(zip(axes, at, strict=True))
