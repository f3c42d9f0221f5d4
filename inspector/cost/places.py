"""Distance of a group's members: on one chip, along axes of a torus, in a node, or far apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...parsers.record import Record
from ..capture.model import Device
from ..ir.derived import derived
from ..ir.program import Program
from ..report.report import Torus
from ..targets.chips import Chip, chip_of_kind
from ..targets.target import wraps

MAX_PAIRS = 1 << 16
"""Pairs of devices whose ways are followed for one estimate."""

LinkOfChip = tuple[int, int, int, tuple[int, ...]]
"""Slice, axis, direction, and the chip that it leaves."""


class Load(Record, frozen=True):
    """Link load of simultaneous transfers: the number over the busiest link, and the longest route in hops."""

    busiest: int
    farthest: int


def load_of(pairs: Iterable[tuple[Device, Device]], torus: Torus) -> Load:
    """The load when all of these pairs of devices of one slice, source and target, transfer at once."""
    uses: Counter[LinkOfChip] = Counter()
    farthest = 0
    for source, target in pairs:
        links = list(way(source, target, torus))
        farthest = max(farthest, len(links))
        uses.update(links)
    return Load(max(uses.values(), default=0), farthest)


def ring_pairs(members: Sequence[Device]) -> Iterator[tuple[Device, Device]]:
    """Each member with both of its neighbours, in the order given."""
    for number, member in enumerate(members):
        neighbours = {(number + 1) % len(members), (number - 1) % len(members)} - {number}
        yield from ((member, members[other]) for other in sorted(neighbours))


def all_pairs(members: Sequence[Device]) -> Iterator[tuple[Device, Device]]:
    """Each member with every other."""
    yield from ((source, target) for source in members for target in members if source is not target)


def way(source: Device, target: Device, torus: Torus) -> Iterator[LinkOfChip]:
    """The links from one chip to another, one axis after the other, each the shorter way round."""
    at = list(source.coords)
    for axis, extent in enumerate(torus.shape):
        distance = target.coords[axis] - at[axis]
        if torus.closed[axis] and abs(distance) > extent / 2:
            distance -= extent if distance > 0 else -extent
        step = 1 if distance > 0 else -1
        for _ in range(abs(distance)):
            yield source.slice, axis, step, tuple(at)
            at[axis] = (at[axis] + step) % extent


class TorusLine(Record, frozen=True):
    """The part of one torus axis that a group covers.

    `size` places, each `stride` links from the next; `closed` where these links form a ring.
    """

    size: int
    stride: int
    closed: bool

    @property
    def ways(self) -> int:
        """In how many directions data can go round at once."""
        return 2 if self.closed else 1


class Detour(Record, frozen=True):
    """The load of the links when all groups talk at once, each member to both neighbours in the order of its group.

    `exchange` is how many transfers go over the busiest link when everyone sends to everyone; None where they are too
    many to follow.
    """

    ring: Load
    exchange: int | None


class Route(Record, frozen=True):
    """The route between the members of a group.

    `size` members, `far` islands of fast links (slices, nodes), `lines` inside of one island of a torus. `sharing`
    groups like it go over the links of each chip, one for each of its cores. `detour` is set where the members do not
    fill the lines: then they talk along other chips' links.
    """

    size: int
    far: int = 1
    lines: tuple[TorusLine, ...] = ()
    sharing: int = 1
    detour: Detour | None = None

    @property
    def near(self) -> int:
        """Number of members that share an island."""
        return max(1, self.size // self.far)


MAX_CHIPS, MAX_CORES = 1 << 16, 1 << 6
MAX_EXTENT = 1 << 12
"""Chips of a torus, cores of one, and chips along one axis: a file that says more is about no machine that there is."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The devices that a program runs on, by the numbers of its partitions."""

    chip: Chip = field(hash=False)
    devices: tuple[Device, ...] = field(hash=False)
    shape: tuple[int, ...]

    @property
    def cores(self) -> int:
        """Devices of one chip."""
        return max(device.core for device in self.devices) + 1

    @property
    def share(self) -> float:
        """The part of its chip that each device has."""
        return 1 / self.cores

    @property
    def closed(self) -> tuple[bool, bool, bool]:
        """The axes of a slice's torus that form rings."""
        return wraps(self.chip, self.shape)

    def routes(self, groups: Iterable[Sequence[int]]) -> frozenset[Route]:
        """The distinct routes among some groups of partitions; those of devices that are not there are left out."""
        count = len(self.devices)
        there = [group for group in groups if group and 0 <= min(group) <= max(group) < count]
        known = [_islands(self.devices[partition] for partition in group) for group in there]
        found = frozenset(map(self._route, known))
        if self.chip.platform == "gpu" or all(map(self._fills_its_lines, known)):
            return found
        detour = self._detour([island for islands in known for island in islands])
        return frozenset(replace(route, detour=detour) for route in found)

    def _route(self, islands: Sequence[Sequence[Device]]) -> Route:
        size = sum(map(len, islands))
        if self.chip.platform == "gpu":
            return Route(size, len(islands))
        # All islands hold the same part of a mesh, or the slowest one counts.
        island = max(islands, key=len)
        together = max(1, len(island) // len({member.coords for member in island}))
        return Route(size, len(islands), self._lines(island), sharing=max(1, self.cores // together))

    def _fills_its_lines(self, islands: Sequence[Sequence[Device]]) -> bool:
        return all(
            math.prod(line.size for line in self._lines(island)) == len({member.coords for member in island})
            for island in islands
        )

    def _detour(self, islands: Sequence[Sequence[Device]]) -> Detour:
        torus = Torus(self.shape, self.closed)
        ring = load_of((pair for island in islands for pair in ring_pairs(island)), torus)
        if sum(len(island) ** 2 for island in islands) > MAX_PAIRS:
            return Detour(ring, None)
        return Detour(ring, load_of((pair for island in islands for pair in all_pairs(island)), torus).busiest)

    def _lines(self, island: Sequence[Device]) -> tuple[TorusLine, ...]:
        lines = []
        closed = self.closed
        for axis, extent in enumerate(self.shape):
            places = sorted({member.coords[axis] for member in island})
            if len(places) > 1:
                stride = max(1, (places[-1] - places[0]) // (len(places) - 1))
                whole = len(places) * stride == extent
                lines.append(TorusLine(len(places), stride, closed[axis] and whole))
        return tuple(lines)


def _islands(members: Iterable[Device]) -> tuple[tuple[Device, ...], ...]:
    islands: dict[int, list[Device]] = {}
    for member in members:
        islands.setdefault(member.slice, []).append(member)
    return tuple(map(tuple, islands.values()))


@derived
def machine_of(program: Program) -> Machine | None:
    """The machine of a program; None where its devices are fake, of an unknown kind, or where no torus has places."""
    subject, devices = program.capture.subject, program.devices
    if subject is None or subject.device_kind is None:
        return None
    chip = chip_of_kind(subject.device_kind)
    if chip is None or not devices:
        return None
    if any(not 0 <= place < MAX_EXTENT for device in subject.devices for place in device.coords):
        return None
    if any(not 0 <= device.core < MAX_CORES for device in subject.devices):
        return None
    axes = range(min(len(device.coords) for device in subject.devices))
    shape = tuple(max(device.coords[axis] for device in subject.devices) + 1 for axis in axes)
    return None if math.prod(shape) > MAX_CHIPS else Machine(chip, devices, shape)
