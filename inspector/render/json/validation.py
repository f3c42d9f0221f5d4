"""The compiled program, evaluated and compared with its source."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from ...capture import model
from ...capture.protocol.values import DifferingInstruction
from .references import shaped


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
