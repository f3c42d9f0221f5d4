"""Gradients of which several sums are parts: a tied weight's, or one that is accumulated over batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...parsers.hlo import Instruction
from ..dataflow.hlo import HloUse
from ..dataflow.meaning import SAME, Does, meaning_of
from ..dataflow.sources import Place, ValueFlow
from ..dataflow.walks import forward

MAX_VALUES = 1_000
"""Values that are followed for one sum."""

SCALED = SAME | Does.SCALE | Does.SLICE
"""Operations that hand on a sum, scaled or masked, or of which each device keeps its own block."""

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
    reach = forward(flow.flow, flow.values(start), SCALED | Does.ADD | Does.PLACE, keeps=_keeps, limit=MAX_VALUES)
    yield from (use.instruction for use in reach.steps if flow.flow.does(use) & (Does.ADD | Does.PLACE))
    for use in reach.ends:
        if use.instruction.opcode in SUMS:
            yield Place(use.instruction, use.position if len(use.instruction.operands) > 1 else None)


def _keeps(use: HloUse) -> bool:
    """Return whether a sum stays what it is: of what places it in something larger, only scatters add to it."""
    return not meaning_of(use.instruction.opcode).of(use.position) & Does.PLACE or use.instruction.opcode == "scatter"
