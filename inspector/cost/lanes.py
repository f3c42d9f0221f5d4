"""The links that a collective uses: transfers without a link in common need not take turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from ..capture.model import Device
from ..report import Collective
from ..report.report import Torus
from .places import LinkOfChip, Machine, way

MAX_LINKS = 1 << 16
"""For more, a collective is taken to use all there are."""

Lanes = frozenset[LinkOfChip] | None
"""Links, each in one direction; None for all."""


class LinkClock:
    """Until when each link is busy."""

    def __init__(self) -> None:
        self._until: dict[LinkOfChip, float] = {}
        self._all = 0.0
        self.latest = 0.0

    def transfer(self, lanes: Lanes, earliest: float, seconds: float, transmitting: float) -> float:
        """Use some links as soon as all of them are free, which are busy as long as it transmits; return the end."""
        busy = self.latest if lanes is None else max((self._until.get(lane, 0.0) for lane in lanes), default=0.0)
        begin = max(earliest, self._all, busy)
        end = begin + seconds
        if lanes is None:
            self._all = end
        else:
            self._until.update(dict.fromkeys(lanes, begin + transmitting))
        self.latest = max(self.latest, end)
        return end


def lanes_of(collective: Collective, machine: Machine) -> Lanes:
    """The links of the torus that a collective uses; None where it uses others, or too many to follow."""
    if machine.chip.platform != "tpu" or not machine.shape:
        return None
    count, torus = len(machine.devices), Torus(machine.shape, machine.closed)
    members = {number for group in (*collective.groups, *collective.pairs) for number in group}
    devices = {number: machine.devices[number] for number in members if 0 <= number < count}
    if not devices or len(devices) < len(members) or len({device.slice for device in devices.values()}) > 1:
        return None
    links: set[LinkOfChip] = set()
    found = _of_pairs(collective.pairs, devices, torus) if collective.pairs else _of_groups(collective, devices, torus)
    for link in found:
        links.add(link)
        if len(links) > MAX_LINKS:
            return None
    return frozenset(links)


def _of_pairs(pairs: Iterable[tuple[int, int]], devices: Mapping[int, Device], torus: Torus) -> Iterator[LinkOfChip]:
    for source, target in pairs:
        yield from way(devices[source], devices[target], torus)


def _of_groups(collective: Collective, devices: Mapping[int, Device], torus: Torus) -> Iterator[LinkOfChip]:
    """Both directions along each axis of the box that a group spans; a damaged text may have a group of none."""
    for group in filter(None, collective.groups):
        yield from _of_box([devices[number] for number in group], torus)


def _of_box(members: Sequence[Device], torus: Torus) -> Iterator[LinkOfChip]:
    places = [sorted({member.coords[axis] for member in members}) for axis in range(len(torus.shape))]
    spans = [range(each[0], each[-1] + 1) for each in places]
    for at in product(*spans):
        for axis, span in enumerate(spans):
            if len(span) > 1:
                yield from ((members[0].slice, axis, step, at) for step in (1, -1))
