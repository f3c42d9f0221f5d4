"""Values on each device before and after an equation, and the devices with equal ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from textual.content import Content

from ..inspector.capture.protocol.values import Probe
from ..inspector.render.tables.device_values import alike_shards, devices_text
from ..inspector.render.tables.reference import Deviation, deviations
from ..inspector.report import ProbedValue, Report
from ..inspector.report.elements import array_lines
from ..parsers.record import Record
from .mesh_grid import Picture, Traffic, draw
from .painted import axis_hues, data, fact, folded, hue, title

STEP = 4
"""Rows or columns by which the window moves."""

HEIGHT = 8
CELL = 8
"""Columns of the screen that one element takes, about."""

MAX_VALUES = 64
"""Different values that are shown."""

MIN_BESIDE = 60
"""Columns that it takes to have before and after beside each other."""

BETWEEN = 2
"""Blank columns between them."""

TITLES = {"before": "BEFORE", "after": "AFTER", "argument": "argument", "output": "output"}


class Window(Record, frozen=True):
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
    for each in deviations(report):
        if each.place[0] == probe.path and (probe.path or each.place[1:] == (probe.when, probe.position)):
            yield from fact("one device", _against(each, probe), width)
    yield from _picture(report, probe, width)
    together = [
        other
        for other in report.probes
        if probe.path and (other.probe.path, other.probe.iteration) == (probe.path, probe.iteration)
    ]
    yield Content("")
    if len(together) == 2 and width >= MIN_BESIDE:
        half = (width - BETWEEN) // 2
        yield from _beside(_values(together[0], window, half), _values(together[1], window, half), half)
        return
    for number, other in enumerate(together or [value]):
        yield from [Content("")] if number else []
        yield from _values(other, window, width)


def _against(each: Deviation, probe: Probe) -> str:
    """`after: off by 12× the rounding tolerance, devices 1–3, iteration 3–5, the first in program order`."""
    side = f"{each.place[1]}: " if probe.path else ""
    where = f", iteration {each.iterations}" if each.iterations else ""
    first = ", the first in program order" if each.is_first else ""
    return f"{side}off by {each.off_by}, devices {each.devices.removeprefix('devices ')}{where}{first}"


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
    yield Content.styled("same colour = same value", "$aside")
    yield from draw(Picture(mesh, traffic, devices, axis_hues=axis_hues(report.meshes), width=width, height=16))


def _values(value: ProbedValue, window: Window, width: int) -> list[Content]:
    """A value, on all devices that hold the same once."""
    probe, lines = value.probe, [title(TITLES[value.probe.when]) + data(f"  {value.name}:{value.probe.type}")]
    digests = list(dict.fromkeys(shard.digest for shard in probe.shards))
    alike = alike_shards(probe)
    for numbers in alike[:MAX_VALUES]:
        lines += folded(data(devices_text(probe, numbers), hue(digests.index(probe.shards[numbers[0]].digest))), width)
        lines += _array(probe, numbers[0], window, width)
    if len(alike) > MAX_VALUES:
        lines.append(Content.styled(f"and {len(alike) - MAX_VALUES} more values", "$aside"))
    return lines


def _array(probe: Probe, number: int, window: Window, width: int) -> list[Content]:
    """The elements of a shard: as many in a line as fit, which depends on what they are."""
    for columns in (width // 2, width // 4, max(1, (width - 4) // CELL)):
        lines = [data(f"  {line}") for line in array_lines(probe, number, HEIGHT, columns, window.top, window.left)]
        if all(line.cell_length <= width for line in lines):
            break
    return [line.truncate(width, ellipsis=True) for line in lines]


def _beside(left: list[Content], right: list[Content], width: int) -> Iterator[Content]:
    for one, other in zip_longest(left, right, fillvalue=Content("")):
        yield one.pad_right(max(width - one.cell_length, 0) + BETWEEN) + other
