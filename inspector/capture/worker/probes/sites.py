"""Positions in a program at which values are taken, and the run's results: device, iteration, value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from jax.sharding import Mesh

KEPT_AT_MOST = 64
"""Iterations that are kept of all loops around one value together."""

When = Literal["argument", "before", "after", "output", "digest", "branch", "count"]
Path = tuple[str, ...]
"""Ids of equations, outermost first; the last is the one that is meant."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """A shard_map around a value: `axes` become manual in it."""

    axes: tuple[str, ...]
    sizes: tuple[int, ...]
    mesh: Any
    checked: bool


@dataclass(frozen=True, slots=True)
class Looped:
    """A loop around a value: one slot for each of the iterations `kept`, and one for the last of the others.

    `length` is None where only the run tells: then `more` is how often what stands in it is evaluated beside, which is
    once for the condition, as it ends the loop.
    """

    path: Path
    kept: tuple[int, ...]
    length: int | None
    more: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """A branch around a value."""

    path: Path
    branch: int


Layer = Mapped | Looped | Taken


@dataclass(frozen=True, slots=True)
class Site:
    """A position at which a value is taken: its equation, the operand or result, and the enclosing equations.

    `when` is `before` or `after`; or `digest`, for the digest of a result; or `branch` and `count`, for what a
    conditional chose and how often a loop ran. `type` is the value's.
    """

    path: Path
    when: When
    position: int
    layers: tuple[Layer, ...]
    type: str


def manual_axes(layers: Sequence[Layer]) -> tuple[str, ...]:
    """The axes that are manual inside of some equations."""
    return tuple(axis for layer in layers if isinstance(layer, Mapped) for axis in layer.axes)


def slots_for(iterations: tuple[int, ...], length: int | None, around: Sequence[Layer]) -> tuple[int, ...]:
    """Return the iterations of a loop that are recorded: fewer where the loops around it multiply them."""
    room = KEPT_AT_MOST
    for layer in around:
        if isinstance(layer, Looped):
            room //= len(layer.kept) + 1
    chosen = [number for number in iterations if length is None or number < length]
    return tuple(chosen[: max(1, room - 1)])


class Reading(NamedTuple):
    """One device's value: its coordinates by axis, the iterations of the loops around it, its place in the array."""

    coordinates: dict[str, int]
    iteration: tuple[int, ...]
    at: tuple[int, ...]


class Run:
    """The arrays of one probed run, with what its loops and branches did.

    `counts` and `choices` are by the path of the loop or conditional; their dimensions are those of what is around it.
    """

    def __init__(self, sites: dict[str, Site], arrays: dict[str, Any]) -> None:
        self._counts = self._of("count", sites, arrays)
        self._choices = self._of("branch", sites, arrays)

    def _of(self, when: str, sites: dict[str, Site], arrays: dict[str, Any]) -> dict[Path, Any]:
        return {site.path: np.asarray(arrays[key]) for key, site in sites.items() if site.when == when}

    def readings(self, site: Site) -> Iterator[Reading]:
        """Every value that was there, in row-major order of the mesh; what was not run is left out."""
        return self._inside(site, 0, Reading({}, (), ()))

    def by_iteration(self, site: Site) -> dict[tuple[int, ...], list[Reading]]:
        """The same, by the iterations of the loops around, in their order."""
        groups: dict[tuple[int, ...], list[Reading]] = {}
        for reading in self.readings(site):
            groups.setdefault(reading.iteration, []).append(reading)
        return dict(sorted(groups.items()))

    def _inside(self, site: Site, depth: int, outer: Reading) -> Iterator[Reading]:
        if depth == len(site.layers):
            yield outer
            return
        match site.layers[depth]:
            case Mapped(axes, sizes):
                for place in product(*map(range, sizes)):
                    coordinates = {**outer.coordinates, **dict(zip(axes, place, strict=True))}
                    inner = Reading(coordinates, outer.iteration, (*outer.at, *place))
                    yield from self._inside(site, depth + 1, inner)
            case Looped(path, kept, length, more):
                count = int(self._counts[path][outer.at]) + more if length is None else length
                slots = [(slot, number) for slot, number in enumerate(kept) if number < count]
                if count and count - 1 not in kept:
                    slots.append((len(kept), count - 1))
                for slot, number in slots:
                    inner = Reading(outer.coordinates, (*outer.iteration, number), (*outer.at, slot))
                    yield from self._inside(site, depth + 1, inner)
            case Taken(path, branch):
                if int(self._choices[path][outer.at]) == branch:
                    yield from self._inside(site, depth + 1, outer)


def device_ids(site: Site, coordinates: dict[str, int], assignment: list[int]) -> int:
    """The device at these coordinates; where other axes are left to the compiler, the first of those that share it."""
    meshes = [layer.mesh for layer in site.layers if isinstance(layer, Mapped)]
    mesh = next((mesh for mesh in meshes if isinstance(mesh, Mesh)), meshes[0])
    place = tuple(coordinates.get(axis, 0) for axis in mesh.axis_names)
    if isinstance(mesh, Mesh):
        return int(mesh.devices[place].id)
    return assignment[int(np.ravel_multi_index(place, tuple(mesh.shape[axis] for axis in mesh.axis_names)))]


class DeviceBlocks:
    """Reads what lies at an index of the leading dimensions from the shard that holds it.

    The array need not be put together on the host for that, which for large ones takes most of the time; only where the
    other dimensions are cut too it is.
    """

    def __init__(self, array: Any, leading: int) -> None:
        shards = array.addressable_shards
        self._extent = shards[0].data.shape
        is_apart = self._extent[leading:] == array.shape[leading:]
        self._whole = None if is_apart else np.asarray(array)
        self._shards = {tuple(each.start or 0 for each in shard.index[:leading]): shard for shard in shards}
        self._read: dict[tuple[int, ...], Any] = {}

    def __getitem__(self, at: tuple[int, ...]) -> Any:
        if self._whole is not None:
            return self._whole[at]
        start = tuple(place // extent * extent for place, extent in zip(at, self._extent, strict=False))
        if start not in self._read:
            self._read[start] = np.asarray(self._shards[start].data)
        return self._read[start][tuple(place - begin for place, begin in zip(at, start, strict=True))]
