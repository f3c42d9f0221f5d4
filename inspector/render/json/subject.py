"""The subject of a capture, how the capture went, its stages, and the compiled program compared with its source."""

from __future__ import annotations

from itertools import islice
from typing import Literal

from msgspec import Struct, field

from ....parsers.errors import Problem
from ...capture import model
from ...capture.protocol import events
from ...capture.protocol.values import DifferingInstruction
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
    return TextPlace(problem.message, line, column, expected=list(problem.expected))


class ValidatedOutput(Struct, frozen=True):
    """An output on all devices.

    `error` is the largest difference in multiples of the output's largest element, `scale`, null where one of both is
    not finite. `devices` are those whose block differs, in up to `elements` of its `block` elements; `is_alike` is true
    if all devices have the same wrong block.
    """

    path: str
    shape: list[int]
    error: float | None
    devices: list[int]
    elements: int
    block: int
    scale: float
    is_alike: bool


class ValidatedPass(Struct, frozen=True):
    """The first pass of the compiler after which the outputs differ, and the last before it after which they do not."""

    pipeline: str
    name: str
    previous: str
    recorded: int
    evaluated: int


class Validation(Struct, frozen=True):
    """The compiled program, compared in exact arithmetic with the program that the compiler was given.

    Where it was not evaluated, or differs because it never ends, `reason` says why, and `place` at which instruction of
    which `program`. `kernels` are those that were taken as unknown functions. `rounding` is a type of constants whose
    rounding explains `error`, which is null where it is infinite. `not_finite` are outputs that are so in the source,
    `reproduction` is the folder with the files that show a difference.
    """

    status: Literal["same", "differs", "not evaluated"]
    devices: int
    error: float | None
    outputs: list[ValidatedOutput]
    differing_pass: ValidatedPass | None = field(name="pass")
    first: DifferingInstruction | None = field()
    reason: str = field()
    place: str = field()
    program: str = field()
    kernels: list[str] = field()
    rounding: str | None = field()
    not_finite: list[str] = field()
    compiler: str = field()
    reproduction: str | None = field()
    seconds: float = field()


def validation_of(found: model.Validation) -> Validation:
    """A validation in its JSON shape."""
    outputs = [shaped(ValidatedOutput, each, error=_finite(each.error)) for each in found.outputs]
    return shaped(Validation, found, error=_finite(found.error), outputs=outputs)


def _finite(number: float) -> float | None:
    return number if number < float("inf") else None
