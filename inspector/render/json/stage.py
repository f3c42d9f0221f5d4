"""The stages: sizes, opcodes, and what could not be read."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ....parsers.errors import Problem
from ...report import StageSummary
from .shaped import shaped


class Place(Struct, frozen=True):
    """Something in a text that could not be read; line and column count from 1."""

    message: str
    line: int
    column: int
    expected: list[str]


class Stage(Struct, frozen=True):
    """One text of the program on its way through the compiler; `opcodes` are counts, most frequent first."""

    name: str
    dialect: Literal["jaxpr", "mlir", "hlo"]
    bytes: int
    lines: int
    instructions: int
    opcodes: dict[str, int]
    seconds: float | None
    problems: list[Place]


def stage_of(stage: StageSummary) -> Stage:
    """A stage in its JSON shape."""
    return shaped(Stage, stage, problems=list(map(_place, stage.problems)))


def _place(problem: Problem) -> Place:
    line, column = problem.source.position(problem.span.start)
    return Place(problem.message, line, column, list(problem.expected))
