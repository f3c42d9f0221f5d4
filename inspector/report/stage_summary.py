"""The size and the contents of a stage."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from ...parsers.errors import Problem
from ...parsers.record import Record
from ..capture.model import Dialect


class StageSummary(Record, frozen=True):
    """The size of one stage, how its operations are distributed, and what could not be read in it.

    `collective_counts` are by kind.
    """

    name: str
    dialect: Dialect
    bytes: int
    lines: int
    instructions: int
    opcodes: dict[str, int]
    seconds: float | None
    problems: tuple[Problem, ...] = ()
    collective_counts: Mapping[str, int] = field(default_factory=dict)
