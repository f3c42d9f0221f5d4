"""Values on each device, and those that differ where they should not."""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct

from ... import report
from ...values.elements import Element, shard_bits, shard_elements
from .shaped import shaped
from .source import Source

MOST_VALUES = 256

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
    source: Source


class Divergence(Struct, frozen=True):
    """A value declared the same along an axis whose bits differ there, and the first iteration and devices that do."""

    equation: str
    primitive: str
    value: str
    type: str
    axis: str
    declared: Literal["type", "inferred", "out_specs"]
    iteration: list[int]
    devices: list[int]
    is_first: bool
    source: Source


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
            values=_values(shard_elements(probe, number)) if math.prod(probe.extent) <= MOST_VALUES else None,
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
