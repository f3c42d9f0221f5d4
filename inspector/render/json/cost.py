"""Estimated times, with the formulas and the constants that they are made of."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ...report import cost as estimates
from .shaped import shaped


class Term(Struct, frozen=True):
    """One symbol of a formula; `source` is empty for what the program decides."""

    symbol: str
    value: float
    unit: Literal["s", "B", "B/s", ""]
    meaning: str
    source: str


class Estimate(Struct, frozen=True):
    """The time of one execution, by a model."""

    link: Literal["chip", "torus axis", "torus axes", "node", "network"]
    formula: str
    terms: list[Term]


class Figure(Struct, frozen=True):
    """A published figure of a chip."""

    name: str
    value: float
    source: str


class Cost(Struct, frozen=True):
    """One run of the function, per device: what each resource would take alone, and what the schedule takes."""

    chip: str
    flops: int
    bytes: int
    compute_seconds: float
    memory_seconds: float
    communication_seconds: float
    seconds: float
    waiting_seconds: float
    bound: Literal["compute", "memory", "communication"]
    at_least: bool
    figures: list[Figure]


def estimate_of(found: estimates.Estimate) -> Estimate:
    """An estimate in its JSON shape, whose numbers of steps stay whole."""
    return shaped(Estimate, found, terms=[Term(t.symbol, t.value, t.unit, t.meaning, t.source) for t in found.terms])


def cost_of(found: estimates.FunctionCost) -> Cost:
    """The cost of a function in its JSON shape."""
    return shaped(
        Cost,
        found,
        compute_seconds=found.compute,
        memory_seconds=found.memory,
        communication_seconds=found.communication,
        seconds=found.total,
        waiting_seconds=found.waiting,
        figures=[Figure(name, figure.value, figure.source) for name, figure in found.figures],
    )
