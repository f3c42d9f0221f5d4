"""The torus of a TPU slice, drawn: chips where their coordinates say, and what goes around."""

from __future__ import annotations

import re

import pytest
from shardscope.inspector.capture.model import Device
from shardscope.inspector.cost.places import Machine
from shardscope.inspector.report.report import Torus
from shardscope.inspector.targets.chips import chips_of
from shardscope.tui.mesh_grid import Traffic
from shardscope.tui.torus_grid import TorusGrid


def machine(*shape: int) -> Machine:
    columns, rows, planes = (*shape, 1, 1)[:3]
    places = [(x, y, z) for z in range(planes) for y in range(rows) for x in range(columns)]
    devices = tuple(Device(number, place) for number, place in enumerate(places))
    return Machine(chips_of("tpu")["v5p"], devices, (columns, rows, planes))


def drawn(found: Machine, axis: int, width: int = 200, height: int = 400) -> list[str]:
    """Groups along one axis of the torus."""
    lines: dict[tuple[int, ...], list[int]] = {}
    for number, device in enumerate(found.devices):
        lines.setdefault((*device.coords[:axis], *device.coords[axis + 1 :]), []).append(number)
    groups = tuple(map(tuple, lines.values()))
    traffic = Traffic(groups, {member: number for number, group in enumerate(groups) for member in group})
    names = range(len(found.devices))
    return [
        line.plain
        for line in TorusGrid(Torus(found.shape, found.closed, found.devices), traffic, names).lines(width, height)
    ]


@pytest.mark.parametrize("shape", [(4, 4, 4), (2, 2, 2), (8, 4, 1), (16, 16, 16)])
def test_each_chip_is_where_it_is(shape: tuple[int, int, int]) -> None:
    found = machine(*shape)
    rows: list[list[int]] = []
    for line in drawn(found, 0):
        if not line.startswith(("torus", "z ", "…")) and (numbers := [int(word) for word in re.findall(r"\d+", line)]):
            rows.append(numbers)
    at = {device.coords: device.id for device in found.devices}
    expected = [[at[x, y, z] for x in range(shape[0])] for z in range(shape[2]) for y in range(shape[1])]
    assert rows == expected


@pytest.mark.parametrize(("shape", "closed"), [((4, 4, 4), True), ((2, 2, 2), False)])
def test_only_what_is_closed_goes_around(shape: tuple[int, int, int], closed: bool) -> None:
    found = machine(*shape)
    assert found.closed == (closed,) * 3
    along_x = [line for line in drawn(found, 0) if re.search(r"\d", line) and not line.startswith(("torus", "z "))]
    assert all(("━━ " in line and line.endswith(" ━━")) == closed for line in along_x)
    ends = [line for line in drawn(found, 1) if line.strip() and not line.strip("┃ ")]
    assert len(ends) == (2 * shape[2] if closed else 0)
    assert all(line.count("┃") == shape[0] for line in ends)


def test_nothing_is_drawn_that_does_not_fit() -> None:
    assert drawn(machine(16, 16, 16), 0, width=40) == []
    few = drawn(machine(16, 16, 16), 0, width=120, height=20)
    assert len(few) < 60
    assert all(len(line) <= 120 for line in few)
    assert few[-1].startswith("…")
