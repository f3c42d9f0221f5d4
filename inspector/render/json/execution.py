"""What running gave, and how much memory it takes."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from ...capture import model
from ...capture.protocol import values
from ...report import PeakMemory, Report
from .probe import Divergence, Probe, probes_of
from .shaped import shaped
from .source import Source


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


class Timing(Struct, frozen=True):
    """A collective of the compiled program on one device: medians over profiled `runs`, waiting included.

    It is executed `count` times in each; `late` is by how many seconds it begins after the first device.
    """

    name: str
    device: int
    runs: int
    count: int
    seconds: float
    late: float


class Apart(Struct, frozen=True):
    """A value that differs from a run on one device, by so many units in the last place of its largest element."""

    site: list[str]
    when: Literal["before", "after", "output"]
    position: int
    iteration: list[int]
    coords: list[int]
    distance: float


class Reference(Struct, frozen=True):
    """A run on one device: values compared, those that differ beyond rounding, or why it is not defined."""

    compared: int
    differs: list[Apart]
    undefined: str | None


class Execution(Struct, frozen=True):
    """The live run: `ran` is false where there was none. `seconds` are of each run after one warm-up.

    `shown` and `probed` count the collectives by opcode in the program that was shown, and in the one that was run to
    take the probes; null where none was.
    """

    ran: bool
    seeded_inputs: bool
    seconds: list[float]
    outputs: list[Output]
    timings: list[Timing]
    probes: list[Probe]
    divergences: list[Divergence]
    reference: Reference | None
    shown: dict[str, int] | None
    probed: dict[str, int] | None


class LiveValue(Struct, frozen=True):
    """A value that is alive when most memory is taken; `opcode` of what made it, or `argument`."""

    name: str
    bytes: int
    type: str
    opcode: str
    op_name: str
    direction: Literal["forward", "backward", "recompute", "unknown"] = field(name="pass")
    source: Source = field()


class Memory(Struct, frozen=True):
    """Bytes as the compiler accounts for them.

    `most` is the largest of its accounts, `fits` whether a device of the target, which has `capacity`, has so much.
    """

    arguments: int | None
    outputs: int | None
    temporaries: int | None
    aliased: int | None
    code: int | None
    peak: int | None
    per: Literal["device"]
    capacity: int | None
    fits: bool | None
    most: int | None
    alive: list[LiveValue]


def execution_of(found: Report) -> Execution:
    """A live run in its JSON shape."""
    execution, probed = found.capture.execution, found.capture.probed
    return shaped(
        Execution,
        found,
        ran=execution is not None,
        seeded_inputs=execution is not None and execution.seeded_inputs,
        seconds=() if execution is None else execution.seconds,
        outputs=() if execution is None else execution.outputs,
        timings=found.capture.collective_times,
        probes=[probe for value in found.probes for probe in probes_of(value)],
        reference=None if found.capture.reference is None else _reference(found.capture.reference),
        shown=None if probed is None else probed.shown,
        probed=None if probed is None else probed.probed,
    )


def _reference(reference: values.Reference) -> Reference:
    differs = [shaped(Apart, apart, site=apart.path, coords=apart.coordinates) for apart in reference.differs]
    return shaped(Reference, reference, differs=differs)


def memory_of(memory: model.Memory, peak: PeakMemory | None) -> Memory:
    """The compiler's account in its JSON shape."""
    return shaped(
        Memory,
        memory,
        per="device",
        capacity=None if peak is None else peak.capacity,
        fits=None if peak is None else peak.fits,
        most=None if peak is None else peak.bytes,
        alive=() if peak is None else [shaped(LiveValue, value, type=str(value.type or "")) for value in peak.alive],
    )
