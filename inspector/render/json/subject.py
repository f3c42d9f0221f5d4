"""The subject of a capture, how the capture went, and its stages."""

from __future__ import annotations

from itertools import islice
from typing import Literal

from msgspec import Struct, field

from ....parsers.errors import Problem
from ...capture.protocol import events
from ...report import StageSummary
from .references import shaped
from .shaped import SourceRef


class Mesh(Struct, frozen=True):
    """`device_ids` run in row-major order of the axes; arguments and results name the mesh of their specs by `key`."""

    name: str | None
    axes: list[events.MeshAxis]
    device_ids: list[int]
    key: str | None = None


class Subject(Struct, frozen=True):
    """The captured function. `device_assignment[p]` is the id of the device that runs partition p."""

    function: str
    script: str | None
    target: str
    platform: str
    device_count: int
    jax: str | None
    jaxlib: str | None
    python: str | None
    meshes: list[Mesh] = field(name="mesh")
    device_assignment: list[int]
    device_kind: str | None
    devices: list[events.Device]


class Message(Struct, frozen=True):
    """Something that the compiler, JAX or the script said; `location` is where they say it, `source` what about."""

    level: Literal["info", "warning", "error"]
    text: str
    phase: str
    location: str | None
    about: str | None
    source: SourceRef


class StackFrame(Struct, frozen=True):
    """A frame of the user's in a traceback."""

    file: str
    line: int
    function: str


class Failure(Struct, frozen=True):
    """The reason why the capture ended early.

    Of an exception, `type` is its class, and `stack` are the user's frames, innermost first. `details` is the
    traceback without JAX's frames, or the last output of the process.
    """

    kind: Literal["usage", "function", "died"]
    type: str
    message: str
    phase: str
    stack: list[StackFrame]
    details: str
    hint: str | None


class TextPlace(Struct, frozen=True):
    """Something in a text that could not be read; line and column count from 1."""

    message: str
    line: int
    column: int
    expected: list[str]


class Stage(Struct, frozen=True):
    """One text of the program on its way through the compiler; `opcodes` are counts, most frequent first.

    `collective_counts` are by kind.
    """

    name: str
    dialect: Literal["jaxpr", "mlir", "hlo"]
    bytes: int
    lines: int
    instructions: int
    opcodes: dict[str, int]
    collective_counts: dict[str, int]
    seconds: float | None
    problems: list[TextPlace]


MAX_OPCODES = 5
"""Opcodes of a stage, the most frequent ones, without the section on stages."""


def stage_of(stage: StageSummary, *, in_full: bool) -> Stage:
    """A stage in its JSON shape."""
    opcodes = dict(islice(stage.opcodes.items(), None if in_full else MAX_OPCODES))
    return shaped(
        Stage,
        stage,
        opcodes=opcodes,
        collective_counts=dict(stage.collective_counts),
        problems=list(map(_place, stage.problems)),
    )


def _place(problem: Problem) -> TextPlace:
    line, column = problem.source.position(problem.span.start)
    return TextPlace(problem.message, line, column, list(problem.expected))
