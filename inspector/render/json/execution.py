"""The results of a run, the values on each device, and the memory that it takes."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Literal

from msgspec import Struct, field

from ... import report
from ...capture import model
from ...capture.protocol.trace import Place
from ...capture.protocol.values import Gradients, Timing
from ...report import Report
from ...report.elements import Element, shard_bits, shard_elements
from .references import Text, shaped
from .shaped import SourceRef, at

MAX_VALUES = 256

MAX_ALIVE = 5
"""Values at the peak of memory, without the section on memory."""

Number = float | int | bool | str


class Summary(Struct, frozen=True):
    """Figures of the finite elements of a shard, and how many others there are; null for types that have none."""

    minimum: float | None
    mean: float | None
    maximum: float | None
    non_finite: int | None


class Probe(Struct, frozen=True):
    """One device's value at one place, in one iteration.

    `site` are the ids of the equation and of those around it, outermost first; empty for arguments and outputs.
    `iteration` counts in the enclosing loops, in the order in which they run. `coords` are the device's places on the
    mesh. What is recorded of it is row-major, from `start`, of `extent`: all of `shape` where it is small. `bits` are
    the elements in hexadecimal, little-endian; `values` are the same, up to 256 of them, else null. What JSON cannot
    write (`nan`, `inf`, complex numbers) is a string there.
    """

    site: list[str]
    primitive: str
    axes: list[str]
    when: Literal["argument", "before", "after", "output"]
    position: int
    name: str
    type: str
    iteration: list[int]
    device: int
    coords: dict[str, int]
    part: str
    shape: list[int]
    start: list[int]
    extent: list[int]
    values: list[Number] | None
    bits: str
    digest: str
    summary: Summary
    source: SourceRef


class Divergence(Struct, frozen=True):
    """A value declared the same along an axis whose bits differ there, and the first iteration and devices that do."""

    equation: str
    primitive: str
    value: str
    type: Text
    axis: str
    declared: Literal["type", "inferred", "out_specs"]
    iteration: list[int]
    devices: list[int]
    is_first: bool
    source: SourceRef


def probes_of(value: report.ProbedValue) -> list[Probe]:
    """A recorded value in its JSON shape: one for each device."""
    probe = value.probe
    return [
        shaped(
            Probe,
            probe,
            site=probe.path,
            primitive=value.primitive,
            axes=value.axes,
            name=value.name,
            device=shard.device,
            coords=dict(zip(probe.axes, shard.coordinates, strict=False)),
            part=shard.part,
            values=_values(shard_elements(probe, number)) if math.prod(probe.extent) <= MAX_VALUES else None,
            bits=shard_bits(probe, number).hex(),
            digest=shard.digest,
            summary=shaped(Summary, shard),
            source=value.source,
        )
        for number, shard in enumerate(probe.shards)
    ]


def _values(elements: tuple[Element, ...] | None) -> list[Number] | None:
    return None if elements is None else list(map(_number, elements))


def _number(element: Element) -> Number:
    if isinstance(element, complex):
        return str(element).strip("()")
    return element if math.isfinite(element) else str(element)


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


class Apart(Struct, frozen=True):
    """A value that differs from a run on one device: `distance` is a multiple of the one that rounding explains.

    `coords` are the coordinates of the device whose copy differs; empty where the value as a whole does. With a
    `factor`, it is that many times the value of one device, or its change is, where it is an `argument` after an
    update. `primitive` and `line` are of its equation.
    """

    path: list[str] = field(name="site")
    when: Literal["before", "after", "output"]
    position: int
    iteration: list[int]
    coordinates: list[int] = field(name="coords")
    distance: float
    factor: float | None
    primitive: str
    line: Place | None
    argument: str


class Reference(Struct, frozen=True):
    """A run on one device: values compared, those that differ beyond rounding, or why it is not defined.

    `left_out` counts those that are not listed, `amplified` values that differ by as much as the program amplifies
    rounding.
    """

    compared: int
    differs: list[Apart]
    undefined: str | None
    left_out: int
    amplified: int


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
    gradients: Gradients | None
    shown: dict[str, int] | None
    probed: dict[str, int] | None


class LiveValue(Struct, frozen=True):
    """A value that is alive when most memory is taken; `opcode` of what made it, or `argument`; of which memory."""

    name: str
    bytes: int
    type: str
    opcode: str
    op_name: str
    direction: Literal["forward", "backward", "recompute", "unknown"] = field(name="pass")
    source: SourceRef = field()
    on_host: bool = False
    in_vmem: bool = False


class HostTransfer(Struct, frozen=True):
    """A copy between the device's memory and the host's: bytes of one execution, and how often it is executed."""

    name: str
    direction: Literal["to host", "from host"]
    type: Text
    bytes: int | None
    executions: int | None
    file: str | None
    line: int | None


class Memory(Struct, frozen=True):
    """Bytes as the compiler accounts for them.

    `most` is what arguments, outputs, temporaries and code take together, what is aliased once; `fits` whether a device
    of the target, which has `capacity`, has so much. `peak` is null where it contradicts them. `host` is of the host's
    memory, and `transfers` are copies there and back.
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
    host: int | None
    transfers: list[HostTransfer]
    alive: list[LiveValue]


def execution_of(found: Report, details: Collection[str]) -> Execution:
    """A live run in its JSON shape: without the `values` of devices and finite outputs, and without `times`."""
    execution, probed = found.capture.execution, found.capture.probed
    outputs = () if execution is None else execution.outputs
    return shaped(
        Execution,
        found,
        ran=execution is not None,
        seeded_inputs=execution is not None and execution.seeded_inputs,
        seconds=() if execution is None else execution.seconds,
        outputs=[each for each in outputs if "values" in details or each.non_finite],
        timings=found.capture.collective_times if "times" in details else (),
        probes=[probe for value in found.probes for probe in probes_of(value)] if "values" in details else (),
        reference=found.capture.reference,
        gradients=found.capture.gradients,
        shown=None if probed is None else probed.shown,
        probed=None if probed is None else probed.probed,
    )


def memory_of(memory: model.Memory, found: report.Report, details: Collection[str]) -> Memory:
    """The compiler's account in its JSON shape, with the largest values of the peak, or all of them."""
    peak, alive = found.peak, found.on_demand.alive_at_peak()
    if not {"memory", "values"} & set(details):
        alive = alive[:MAX_ALIVE]
    return shaped(
        Memory,
        memory,
        per="device",
        peak=None if peak is None else peak.peak,
        transfers=() if peak is None else [shaped(HostTransfer, each, **at(each.source)) for each in peak.transfers],
        capacity=None if peak is None else peak.capacity,
        fits=None if peak is None else peak.fits,
        most=None if peak is None else peak.bytes,
        alive=[shaped(LiveValue, value, type=str(value.type or "")) for value in alive],
    )
