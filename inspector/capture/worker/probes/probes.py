"""A run with probes: each device's values before and after the collectives, and whether shared values are the same."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import jax
import numpy as np

from ...protocol import values
from ...protocol.memory import available_bytes
from ...protocol.values import Compared, Difference, Probe, Shard, part_text
from ..inputs.wrappers import compiled_quickly, jax_jit
from ..program.avals import type_text
from ..program.compiled import compiled_shardings
from . import live
from .keeping import bits
from .partial import parts_of, places_on
from .probing import Prober
from .sites import DeviceBlocks, Looped, Mapped, Reading, Run, Site, When, device_ids, manual_axes
from .timings import census

WHOLE = 4096
"""Elements of a shard that are recorded; of a larger one a window of so many."""

BOUNDARY_BYTES = 1 << 20
"""Bytes of elements of all arguments and outputs: of a model with many, the windows are smaller."""

MAX_BYTES, MAX_CHOSEN_BYTES = 1 << 22, 1 << 26
"""Bytes of recorded elements in one capture, and where somebody chose which."""

REPEAT_BELOW_S = 1.0
"""Seconds below which the run is repeated, without what the first one has to do once."""


class TooLargeError(Exception):
    """The values that were asked for do not fit into memory."""


class Probed:
    """One probed run of a function.

    `window` is where the window into large shards begins, `room` the bytes of elements that are recorded.
    """

    def __init__(self, traced: Any, compiled: Any, prober: Prober, window: tuple[int, ...], room: int) -> None:
        self.prober = prober
        self.window = window
        self.assignment = [int(device.id) for device in compiled.runtime_executable().local_devices()]
        self.room = room
        self._shown = census(compiled.as_text())
        self._traced = traced
        self._outputs = tuple(compiled_shardings(compiled, "output"))
        self._arrays: dict[str, Any] = {}
        self._results: tuple[Any, ...] = ()

    def run(self, inputs: live.Inputs) -> values.Probed:
        """Compile and run; gives the collectives of this program and of the shown."""

        def function(*values: Any) -> Any:
            results, probes = self.prober.run(self._traced.jaxpr, values)
            return tuple(results), probes

        count = len(self._traced.jaxpr.out_avals)
        shardings = (self._outputs, None) if len(self._outputs) == count else None
        traced = jax_jit(function, out_shardings=shardings).trace(*inputs.leaves)
        size = sum(math.prod(aval.shape) * aval.dtype.itemsize for aval in traced.jaxpr.out_avals[count:])
        available = available_bytes()
        if available is not None and size > available // 2:
            raise TooLargeError(f"they take {size / 1e9:.1f} GB; {available / 1e9:.1f} GB of memory are free")
        probed = compiled_quickly(traced.lower())
        seconds = self._timed(probed, inputs)
        if seconds < REPEAT_BELOW_S:
            seconds = min(seconds, self._timed(probed, inputs))
        return values.Probed(self._shown, census(probed.as_text()), round(seconds, 9), len(self.prober.left_out))

    def _timed(self, probed: Any, inputs: live.Inputs) -> float:
        leaves = live.fresh(inputs)
        started = time.perf_counter()
        self._results, self._arrays = jax.block_until_ready(probed(*leaves))
        return time.perf_counter() - started

    def probes(self) -> Iterator[Probe]:
        """The probes, in the order of the program."""
        run = Run(self.prober.sites, self._arrays)
        for key, site in self._sites("before", "after"):
            array = self._arrays[key]
            if any(isinstance(layer, Mapped) for layer in site.layers):
                yield from self._by_coordinates(site, run, array)
            else:
                for reading in run.readings(site):
                    yield from self._shards(site, reading, array)

    def _sites(self, *kinds: When) -> list[tuple[str, Site]]:
        sites = [(key, site) for key, site in self.prober.sites.items() if site.when in kinds]
        return sorted(sites, key=lambda item: _order(item[1]))

    def differences(self) -> tuple[Compared, ...]:
        """For each result whose digests were kept: the axes along which its shards differ, and where they first do."""
        run = Run(self.prober.sites, self._arrays)
        found = []
        for key, site in self._sites("digest"):
            differs = _differences(run, site, bits(self._arrays[key]), self.assignment)
            found.append(Compared(site.path, site.position, manual_axes(site.layers), differs))
        return tuple(found)

    def boundary(self, arguments: Sequence[Any], outputs: Sequence[Any]) -> Iterator[Probe]:
        """The shards of the arguments and outputs that are arrays on devices."""
        sides: tuple[tuple[When, Sequence[Any]], ...] = ("argument", arguments), ("output", outputs)
        arrays = [(when, *item) for when, side in sides for item in enumerate(side) if _is_on_devices(item[1])]
        room = sum(len(array.addressable_shards) * array.dtype.itemsize for *_, array in arrays)
        most = WHOLE if self.window else min(WHOLE, max(1, BOUNDARY_BYTES // max(1, room)))
        for when, position, array in arrays:
            site = Site((), when, position, (), type_text(jax.typeof(array)))
            yield from self._shards(site, Reading({}, (), ()), array, most)

    def _by_coordinates(self, site: Site, run: Run, array: Any) -> Iterator[Probe]:
        groups = run.by_iteration(site)
        blocks = DeviceBlocks(array, max((len(r.at) for r in chain(*groups.values())), default=0))
        for iteration, readings in groups.items():
            held = [
                (device_ids(site, r.coordinates, self.assignment), tuple(r.coordinates.values()), "", blocks[r.at])
                for r in readings
            ]
            yield from self._probe(site, iteration, manual_axes(site.layers), held)

    def _shards(self, site: Site, reading: Reading, array: Any, most: int = WHOLE) -> Iterator[Probe]:
        index = reading.at
        mesh = getattr(array.sharding, "mesh", None)
        places = places_on(array)
        axes = () if mesh is None else tuple(map(str, mesh.axis_names))
        held = [
            (
                int(part.device.id),
                places.get(part.device.id, ()),
                part_text(part.where[len(index) :], array.shape[len(index) :]),
                np.asarray(part.data)[index],
            )
            for part in sorted(parts_of(array), key=lambda part: places.get(part.device.id, (part.device.id,)))
        ]
        yield from self._probe(site, reading.iteration, axes, held, most)

    def _probe(
        self,
        site: Site,
        iteration: tuple[int, ...],
        axes: tuple[str, ...],
        held: list[tuple[int, Any, str, Any]],
        most: int = WHOLE,
    ) -> Iterator[Probe]:
        if not held:
            return
        first = held[0][3]
        start, extent = _window(first.shape, self.window, most)
        pieces = tuple(slice(s, s + e) for s, e in zip(start, extent, strict=True))
        data = b"".join(np.ascontiguousarray(array[pieces]).tobytes() for *_, array in held)
        if len(data) > self.room:
            data = b""
        self.room -= len(data)
        digests = [values.digest_of(array) for *_, array in held]
        figures = {digest: held[number][3] for number, digest in enumerate(digests)}
        known = {digest: live.statistics(array) for digest, array in figures.items()}
        shards = tuple(
            Shard(device, place, digest, part, **known[digest])
            for digest, (device, place, part, _) in zip(digests, held, strict=True)
        )
        when: Any = site.when  # neither a digest nor what a conditional chose: those are no probes
        loops = tuple(layer.path[-1] for layer in site.layers if isinstance(layer, Looped))
        described = (site.type, str(first.dtype), first.shape, axes, shards, iteration, loops, start, extent)
        yield Probe(site.path, when, site.position, *described, data)


def _differences(run: Run, site: Site, digests: Any, assignment: list[int]) -> tuple[Difference, ...]:
    """For each axis along which any two shards differ, the first iteration in which they do, and two devices."""
    found: dict[str, Difference] = {}
    for iteration, readings in run.by_iteration(site).items():
        for axis in readings[0].coordinates:
            if axis in found:
                continue
            seen: dict[Any, Reading] = {}
            for reading in readings:
                rest = tuple(place for name, place in reading.coordinates.items() if name != axis)
                other = seen.setdefault(rest, reading)
                if (digests[other.at] != digests[reading.at]).any():
                    devices = tuple(device_ids(site, r.coordinates, assignment) for r in (other, reading))
                    found[axis] = Difference(axis, iteration, devices)
                    break
    return tuple(found.values())


def _order(site: Site) -> tuple[Any, ...]:
    path = tuple(tuple(map(int, name.split("."))) for name in site.path)
    return path, site.when != "before", site.position


def _is_on_devices(value: Any) -> bool:
    return isinstance(value, jax.Array) and not jax.numpy.issubdtype(value.dtype, jax.dtypes.extended)


def _window(shape: tuple[int, ...], window: tuple[int, ...], most: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Start and extent of what is recorded of a shard: all of a small one, else most of its last dimensions."""
    room, extent = most, []
    small = int(np.prod(shape, dtype=np.int64)) <= most
    for number, size in enumerate(reversed(shape)):
        taken = size if small else min(size, room, math.isqrt(most) if number < 2 else room)
        extent.append(taken)
        room = max(1, room // max(1, taken))
    extent.reverse()
    begins = [0] * (len(shape) - len(window)) + list(window[-len(shape) :] if shape else ())
    start = [max(0, min(begin, size - taken)) for begin, size, taken in zip(begins, shape, extent, strict=True)]
    return tuple(start), tuple(extent)
