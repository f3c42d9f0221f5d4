"""Links from the parts of compiled collectives to what they were in the stages before."""

from __future__ import annotations

from enum import Enum

from ...parsers.record import Record
from ...parsers.source import Span
from ..ir.types import ArrayType
from .collectives import Collective
from .position import Confidence


class Evidence(Enum):
    """Facts that two operations have in common, the strongest first.

    `NUMBER` is that of the operation of the StableHLO, `NAME_AND_LINE` what JAX and the compiler recorded for it. By
    its `OPERAND` it takes a value that comes from the same operation. A `SHAPE` is all that is the same: kind, sizes
    and groups of devices.
    """

    NUMBER = "number"
    NAME_AND_LINE = "name and line"
    OPERAND = "operand"
    SHAPE = "shape"


class Link(Record, frozen=True):
    """An operation of a stage, by its name there, with the evidence for it and the number of rivals with as much."""

    stage: str
    name: str
    span: Span
    evidence: Evidence
    rivals: int
    confidence: Confidence


class LinkedPart(Record, frozen=True):
    """A part of a compiled collective, numbered as its results are, with what it was before, the latest stage first.

    It is `alone` where the collective has no other. Where the compiler merged operations, a stage has several links.
    `confidence` is that of the weakest link.
    """

    collective: Collective
    index: int
    type: ArrayType
    alone: bool
    links: tuple[Link, ...]
    confidence: Confidence
