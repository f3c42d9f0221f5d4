"""What running gave, and how much memory it takes."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ...capture import model


class Output(Struct, frozen=True):
    """One output of the live run; statistics are over finite elements."""

    path: str
    type: str
    spec: str | None
    minimum: float | None
    mean: float | None
    maximum: float | None
    non_finite: int | None
    values: str | None


class Execution(Struct, frozen=True):
    """The live run: `ran` is false where there was none. `seconds` are of each run after one warm-up."""

    ran: bool
    seeded_inputs: bool
    seconds: list[float]
    outputs: list[Output]


class Memory(Struct, frozen=True):
    """Bytes as the compiler accounts for them."""

    arguments: int | None
    outputs: int | None
    temporaries: int | None
    aliased: int | None
    code: int | None
    peak: int | None
    per: Literal["device"]


def execution_of(execution: model.Execution | None) -> Execution:
    """A live run in its JSON shape."""
    if execution is None:
        return Execution(ran=False, seeded_inputs=False, seconds=[], outputs=[])
    return Execution(
        ran=True,
        seeded_inputs=execution.seeded_inputs,
        seconds=list(execution.seconds),
        outputs=[
            Output(o.path, o.type, o.spec, o.minimum, o.mean, o.maximum, o.non_finite, o.values)
            for o in execution.outputs
        ],
    )


def memory_of(memory: model.Memory) -> Memory:
    """The compiler's account in its JSON shape."""
    return Memory(
        memory.arguments, memory.outputs, memory.temporaries, memory.aliased, memory.code, memory.peak, per="device"
    )
