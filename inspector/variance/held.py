"""Variance of a value over each mesh axis, and its origin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ...parsers.record import Record
from ..catalog.collective import State


class Held(Record, frozen=True):
    """One value over one axis: not invariant, since the place `entered`.

    A place is an equation, by its id, and the number of the input for what came into a shard_map through `in_specs`.
    It is `exchanged` if it was sent from device to device, and what is made of several such values may be equal.
    """

    axis: str
    state: State | Literal["exchanged"]
    entered: tuple[str, int | None]


Value = tuple[Held, ...]
"""The axes over which a value is not invariant, sorted by name; empty for one that all devices share."""

SHARED: Value = ()


_SAYS = {"varying": 1, "exchanged": 2}


def value_of(held: Iterable[Held]) -> Value:
    """A value that is all of this; of several over one axis the first counts, before it one that says more."""
    found: dict[str, Held] = {}
    for one in held:
        known = found.get(one.axis)
        if known is None or _SAYS.get(one.state, 0) > _SAYS.get(known.state, 0):
            found[one.axis] = one
    return tuple(sorted(found.values(), key=lambda one: one.axis))


def join(values: Iterable[Value]) -> Value:
    """Return the variance of what is computed from values, or may be any of them."""
    return value_of(one for value in values for one in value)


def without(value: Value, axes: Iterable[str]) -> Value:
    """The value, invariant over these axes."""
    left = set(axes)
    return tuple(one for one in value if one.axis not in left)


def axes_of(value: Value, state: State) -> tuple[str, ...]:
    """The axes over which it is so."""
    return tuple(one.axis for one in value if one.state == state)


def same_axes(one: Value, other: Value) -> bool:
    """Return whether both have equal variance over all axes, whatever its origin."""
    return [(h.axis, h.state) for h in one] == [(h.axis, h.state) for h in other]
