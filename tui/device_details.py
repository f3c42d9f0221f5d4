"""What each device holds before and after an equation, and which of them hold the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from textual.content import Content

from ..inspector.capture.protocol.values import Probe
from ..inspector.report import ProbedValue, Report
from ..inspector.values.elements import array_lines, coordinates_text
from .mesh_grid import Picture, Traffic, draw
from .painted import data, fact, title
from .palette import axis_hues, hue

STEP = 4
"""Rows or columns by which the window moves."""

HEIGHT = 8
CELL = 8
"""Columns of the screen that one element takes, about."""

MAX_DEVICES = 64

TITLES = {"before": "BEFORE", "after": "AFTER", "argument": "argument", "output": "output"}


@dataclass(frozen=True, slots=True)
class Window:
    """The part of large arrays that is shown: from a row and a column on."""

    top: int = 0
    left: int = 0

    def moved(self, down: int, right: int) -> Window:
        """The window, some steps further."""
        return Window(max(0, self.top + down * STEP), max(0, self.left + right * STEP))


def device_details(report: Report, number: int, window: Window, width: int) -> Iterator[Content]:
    """The value of a row in full, with the equation's other values in the same iteration."""
    value = report.probes[number]
    probe = value.probe
    over = f" over {', '.join(value.axes)}" if value.axes else ""
    yield data(f"{value.primitive}{over}" if probe.path else value.name, "bold")
    if probe.iteration:
        yield from fact("iteration", ", ".join(map(str, probe.iteration)), width)
    yield from _picture(report, probe, width)
    together = [
        other
        for other in report.probes
        if probe.path and (other.probe.path, other.probe.iteration) == (probe.path, probe.iteration)
    ]
    for other in together or [value]:
        yield Content("")
        yield from _values(other, window, width)


def _picture(report: Report, probe: Probe, width: int) -> Iterator[Content]:
    """The mesh, devices that hold the same in one colour."""
    mesh = next((mesh for mesh in report.meshes if {name for name, _ in mesh.axes} >= set(probe.axes)), None)
    if mesh is None or not probe.axes:
        return
    subject = report.capture.subject
    devices = (subject.device_assignment if subject is not None else ()) or tuple(range(report.partitions))
    digests = list(dict.fromkeys(shard.digest for shard in probe.shards))
    known = [(devices.index(shard.device), shard.digest) for shard in probe.shards if shard.device in devices]
    groups = tuple(tuple(partition for partition, digest in known if digest == one) for one in digests)
    traffic = Traffic(groups, {partition: digests.index(digest) for partition, digest in known})
    yield Content("")
    yield Content.styled("equal values have one colour", "$aside")
    yield from draw(Picture(mesh, traffic, devices, axis_hues(report.meshes), width, 16))


def _values(value: ProbedValue, window: Window, width: int) -> Iterator[Content]:
    probe = value.probe
    yield title(TITLES[probe.when]) + data(f"  {value.name}:{value.type}")
    digests = list(dict.fromkeys(shard.digest for shard in probe.shards))
    columns = max(1, (width - 4) // CELL)
    for number, shard in enumerate(probe.shards[:MAX_DEVICES]):
        part = f"  [{shard.part}]" if shard.part else ""
        label = f"device {shard.device}  {coordinates_text(probe.axes, shard.coordinates)}{part}"
        yield data(label, hue(digests.index(shard.digest)))
        for line in array_lines(probe, number, HEIGHT, columns, window.top, window.left):
            yield data(f"  {line}").truncate(width, ellipsis=True)
    if len(probe.shards) > MAX_DEVICES:
        yield Content.styled(f"and {len(probe.shards) - MAX_DEVICES} more devices", "$aside")
