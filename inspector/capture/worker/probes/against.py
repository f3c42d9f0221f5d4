"""The values of a sharded run beside those of a run on one device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...protocol.values import Apart, Reference
from .digests import bits, has_bits, plain
from .partial import is_partial, parts_of, places_on, whole
from .sites import Looped, Mapped, Run, Site

ROUNDINGS = 4096
"""Units in the last place, of the largest element, by which another order of summing may change a result."""

CHANGED = 4
"""Units in the last place by which arguments are changed, to see how far rounding goes in what is computed of them."""

AMPLIFIED = 16
"""Times the effect of such a change that rounding may have: there are many roundings, at each operation."""

MAX_DIFFERENCES = 1000
MAX_DISTANCE = 1e300
"""Stands for distances that JSON has no number for."""

Place = tuple[tuple[int, ...], ...]


class Values(NamedTuple):
    """The arrays of the sites of a program with probes, and its own results."""

    sites: dict[str, Site]
    arrays: dict[str, Any]
    results: Sequence[Any]


class Repeated(NamedTuple):
    """Two more runs on one device: of the same arguments, and of `changed` ones."""

    same: Values
    changed: Values


def compared(
    sharded: Values, alone: Values, precision: Mapping[str, float], repeated: Repeated | None = None
) -> Reference:
    """Return the number of values that both runs have, and those that differ, in the order of their computation.

    `precision` is by the key of a site: the machine epsilon of the coarsest type that its value was computed with; that
    of the results is under "". With `repeated`, a value may also differ as much as a change of the arguments by
    rounding makes it, unless it is another one each time. Of too many the first one and those farthest apart are kept.
    """
    count, found = 0, []
    run, other = Run(sharded.sites, sharded.arrays), Run(alone.sites, alone.arrays)
    for key, site in sharded.sites.items():
        if site.when not in ("before", "after") or key not in alone.arrays:
            continue
        when: Any = site.when
        places = {(r.iteration, *r.at) for r in other.readings(alone.sites[key])}
        is_mapped = any(isinstance(layer, Mapped) for layer in site.layers)
        iterations = set()
        for reading in run.readings(site):
            if (reading.iteration, *reading.at) not in places:
                continue  # of another branch, or of a loop that ends elsewhere: what decides that differs itself
            iterations.add(reading.iteration)
            own = tuple(reading.coordinates.values())
            expected, *others = (np.asarray(each.arrays[key])[reading.at] for each in (alone, *(repeated or ())))
            bound = Bound.of(expected, precision[key], *others)
            for copy, distance in _distances(sharded.arrays[key], expected, bound, reading.at, not is_mapped):
                place = (site.path, when, site.position, reading.iteration, copy or own)
                found.append((_order(site, reading.iteration), Apart(*place, distance)))
        count += len(iterations)
    differs = [each for _, each in sorted(found, key=lambda item: item[0])]
    results = zip(sharded.results, alone.results, *(each.results for each in repeated or ()), strict=True)
    for number, (one, *others) in enumerate(results):
        if has_bits(jax.typeof(one)):
            count += 1
            expected, *others = (whole(plain(each)) for each in others)
            bound = Bound.of(expected, precision[""], *others)
            distances = _distances(plain(one), expected, bound)
            differs += [Apart((), "output", number, (), copy, distance) for copy, distance in distances]
    return Reference(
        count,
        tuple(differs[:1] + _farthest(differs[1:])),
        left_out=max(0, len(differs) - MAX_DIFFERENCES),
    )


def places_of(found: Reference) -> set[object]:
    """The values that differ, each in each iteration, on whichever devices."""
    return {(each.path, each.when, each.position, each.iteration) for each in found.differs}


def _order(site: Site, iteration: tuple[int, ...]) -> Place:
    """The position in the order of computation: each iteration of a loop after the one before, and then its results."""
    loops = [layer.path for layer in site.layers if isinstance(layer, Looped)]
    found: list[tuple[int, ...]] = []
    for depth, name in enumerate(site.path, 1):
        is_last = depth == len(site.path)
        found.append((*map(int, name.split(".")), (0 if site.when == "before" else 2) if is_last else 1))
        if site.path[:depth] in loops:
            found.append((iteration[loops.index(site.path[:depth])],))
    return (*found, (site.position,))


def _farthest(found: Sequence[Apart]) -> list[Apart]:
    """So many of them as are kept, in their order."""
    if len(found) < MAX_DIFFERENCES:
        return list(found)
    ranked = sorted(range(len(found)), key=lambda number: -found[number].distance)
    return [found[number] for number in sorted(ranked[: MAX_DIFFERENCES - 1])]


def _distances(
    array: Any, expected: Any, bound: Bound, at: tuple[int, ...] = (), has_copies: bool = True
) -> Iterator[tuple[tuple[int, ...], float]]:
    """The distance of a value; where there is none, that of each device whose copy differs, with its coordinates."""
    value = whole(array)[at]
    distance = bound.beyond(value, expected)
    if distance is not None:
        yield (), min(distance, MAX_DISTANCE)
    elif has_copies and not is_partial(getattr(array, "sharding", None)):
        places = places_on(array)
        for part in parts_of(array):
            where, held = part.where[len(at) :], np.asarray(part.data)[at]
            if not np.array_equal(bits(value[where]), bits(held)):
                copy = np.array(value)
                copy[where] = held
                if (distance := bound.beyond(copy, expected)) is not None:
                    yield places.get(part.device.id, (part.device.id,)), min(distance, MAX_DISTANCE)


class Bound(NamedTuple):
    """The distance from the expected value that rounding explains: of numbers, or of unequal integers their count."""

    distance: float

    @classmethod
    def of(cls, expected: Any, epsilon: float, same: Any = None, changed: Any = None) -> Bound:
        """The bound of a value, computed in a precision, and of what else other runs gave for it."""
        allowed = 0.0
        if jnp.issubdtype(expected.dtype, jnp.inexact):
            sizes = np.abs(expected.astype(_wide(expected)))
            largest = float(sizes[np.isfinite(sizes)].max(initial=0.0))
            allowed = tolerance(epsilon) * max(largest, float(jnp.finfo(expected.dtype).tiny))
        if same is not None and np.array_equal(bits(same), bits(expected)):
            allowed = max(allowed, AMPLIFIED * distance(changed, expected))
        return cls(allowed)

    def beyond(self, value: Any, expected: Any) -> float | None:
        """Return the distance of a value as a multiple of this, or None if it is no more than that."""
        found = distance(value, expected)
        if found <= self.distance:
            return None
        whole_numbers = not jnp.issubdtype(expected.dtype, jnp.inexact)
        return math.inf if whole_numbers or not self.distance else found / self.distance


def tolerance(epsilon: float) -> float:
    """The part of the largest element by which another order of summing may change a result of this precision."""
    return min(ROUNDINGS * epsilon, math.sqrt(epsilon))


def distance(one: Any, other: Any) -> float:
    """The largest difference between elements; of integers and booleans the number of those that are unequal.

    Infinite for other shapes, and for NaNs and infinities that are not at the same places.
    """
    if one.shape != other.shape:
        return math.inf
    if not jnp.issubdtype(one.dtype, jnp.inexact):
        return float(np.count_nonzero(one != other))
    a, b = one.astype(_wide(one)), other.astype(_wide(one))
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf
    return float(np.abs(a[finite] - b[finite]).max(initial=0.0))


def _wide(array: Any) -> Any:
    return np.complex128 if jnp.issubdtype(array.dtype, jnp.complexfloating) else np.float64


def changed(leaf: Any) -> Any:
    """An argument of floats, each changed by a few units in the last place or not at all; any other as it is."""
    if not isinstance(leaf, jax.Array) or not jnp.issubdtype(leaf.dtype, jnp.floating):
        return leaf
    steps = np.random.default_rng(0).integers(-1, 2, leaf.shape) * CHANGED * float(jnp.finfo(leaf.dtype).eps)
    return jax.device_put((np.asarray(leaf).astype(np.float64) * (1 + steps)).astype(leaf.dtype), leaf.sharding)
