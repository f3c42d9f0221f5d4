"""Estimated times, with the formulas and the constants that they are made of."""

from __future__ import annotations

from typing import Literal

from ...parsers.record import Record
from ..targets.chips import Figure

Link = Literal["chip", "torus axis", "torus axes", "node", "network"]
"""The links between a group's members: cores of one chip, torus links, a node's switch, or the network beyond."""

Unit = Literal["s", "B", "B/s", ""]


class Term(Record, frozen=True):
    """One symbol of a formula. `source` says where a constant is published; it is empty for what the program decides.

    `meaning` is in words.
    """

    symbol: str
    value: float
    unit: Unit
    meaning: str
    source: str = ""


class Estimate(Record, frozen=True):
    """A model's estimate of one execution of a collective: `docs/cost.md` has its errors.

    `transmitting` is how long its links are busy, without the hops that the last byte still has to go: another transfer
    may begin then. None where that is all of the time.
    """

    seconds: float
    link: Link
    formula: str
    terms: tuple[Term, ...]
    transmitting: float | None = None


Bound = Literal["compute", "memory", "communication"]


class FunctionCost(Record, frozen=True):
    """One run of a function on each device, by the model; seconds, operations and bytes per device.

    `compute`, `memory` and `communication` are what each would take alone: matrix products at the peak rate, bytes
    through the device's memory, and all collectives one after another. `total` goes through the schedule, `waiting` of
    it is for transfers that nothing hides, between memories too. `unknown` names what is not in it: rounds of a loop
    whose trip count, collectives whose size or group, and kernels whose time is not known. What bounds it then is not
    known either. `figures` are the constants that it is made of, by name.
    """

    chip: str
    flops: int
    bytes: int
    compute: float
    memory: float
    communication: float
    total: float
    waiting: float
    unknown: tuple[str, ...]
    figures: tuple[tuple[str, Figure], ...]

    @property
    def at_least(self) -> bool:
        """True if it takes longer than the known part of it."""
        return bool(self.unknown)

    @property
    def bound(self) -> Bound:
        """The largest of the three."""
        named: dict[Bound, float] = {
            "compute": self.compute,
            "memory": self.memory,
            "communication": self.communication,
        }
        return max(named, key=lambda name: named[name])


def constant(symbol: str, figure: Figure, unit: Unit, meaning: str) -> Term:
    """A term that is a published figure."""
    return Term(symbol, figure.value, unit, meaning=meaning, source=figure.source)
