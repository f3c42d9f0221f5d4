"""The links of a torus that transfers go over: one axis after the other, round a closed axis the shorter way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..capture.model import Device

MOST_PAIRS = 1 << 16
"""Pairs of devices whose ways are followed for one estimate."""

LinkOfChip = tuple[int, int, int, tuple[int, ...]]
"""Slice, axis, direction, and the chip that it leaves."""


@dataclass(frozen=True, slots=True)
class Torus:
    """The chips of one slice: how many along each axis, and which axes are closed to rings."""

    shape: tuple[int, ...]
    closed: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """What some simultaneous transfers ask of the links: how many go over the busiest, and the longest way in hops."""

    busiest: int
    farthest: int


def load_of(pairs: Iterable[tuple[Device, Device]], torus: Torus) -> Load:
    """The load when all of these pairs of devices of one slice, source and target, transfer at once."""
    uses: Counter[LinkOfChip] = Counter()
    farthest = 0
    for source, target in pairs:
        links = list(_way(source, target, torus))
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


def _way(source: Device, target: Device, torus: Torus) -> Iterator[LinkOfChip]:
    at = list(source.coords)
    for axis, extent in enumerate(torus.shape):
        distance = target.coords[axis] - at[axis]
        if torus.closed[axis] and abs(distance) > extent / 2:
            distance -= extent if distance > 0 else -extent
        step = 1 if distance > 0 else -1
        for _ in range(abs(distance)):
            yield source.slice, axis, step, tuple(at)
            at[axis] = (at[axis] + step) % extent
