"""Gradients of which several sums are parts: a tied weight's, or one that is accumulated over batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...parsers.hlo import Instruction
from ..catalog.opcodes import HLO_UNCHANGED
from ..dataflow.sources import CARRYING, Place, ValueFlow

MAX_VALUES = 200
"""Values that are followed for one sum."""

SCALED = CARRYING | HLO_UNCHANGED | {"multiply", "negate", "select"}
"""Opcodes that hand on a sum, scaled or masked."""

OF_FIRST = ("divide", "dynamic-slice", "slice")
"""The same of their first operand, of which each device may keep its own block."""

ADDED = {"add": (0, 1), "subtract": (0, 1), "scatter": (0,)}
"""Opcodes that add to a sum, with the positions of the operands that have as many elements."""

SUMS = ("all-reduce", "all-reduce-start", "reduce-scatter")


def gradients_of(flow: ValueFlow, sums: Iterable[Place]) -> Mapping[Place, Place]:
    """Return for each result of a sum the first one that is a part of the same gradient.

    They are if they are added to each other, or if one is added to what another sums.
    """
    found: dict[Place, Place] = {}
    first: dict[object, Place] = {}

    def root(place: Place) -> Place:
        while found[place] != place:
            place = found[place]
        return place

    for each in sums:
        found.setdefault(each, each)
        for met in (each, *_additions(flow, each)):
            other = first.setdefault(met, each)
            found[root(each)] = root(other)
    return {each: root(each) for each in found}


def _additions(flow: ValueFlow, start: Place) -> Iterator[Instruction | Place]:
    """The additions that take a sum, in fusions too, and the sums of these."""
    waiting, seen = [start], {start}
    while waiting and len(seen) < MAX_VALUES:
        for after in _onward(flow, waiting.pop()):
            if isinstance(after, Instruction):
                yield after
                continue
            if after.instruction.opcode in SUMS:
                yield after
            elif after not in seen:
                seen.add(after)
                waiting.append(after)


def _onward(flow: ValueFlow, place: Place) -> Iterator[Instruction | Place]:
    for user, position in flow.uses_of(place):
        opcode = user.opcode
        if opcode in ("fusion", "call"):
            yield from (Place(each, place.element) for each in flow.graph.entered(user, position) if each is not None)
        elif opcode == "get-tuple-element":
            yield Place(user)
        elif opcode == "tuple":
            yield Place(user, position)
        elif opcode in SUMS:
            yield Place(user, position if len(user.operands) > 1 else None)
        elif opcode in SCALED or (opcode in OF_FIRST and position == 0):
            yield Place(user, place.element if opcode in HLO_UNCHANGED else None)
        elif position in ADDED.get(opcode, ()):
            yield user
            yield Place(user)
    yield from (Place(caller, place.element) for caller in flow.graph.becomes(place.instruction))
