"""The devices that a kernel's copies and signals go to, from the numbers that name them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...parsers.sharding_syntax.mesh import AxisRef
from ..catalog.spellings import is_kernel
from ..ir.jaxpr_flow import At, JaxprFlow
from ..ir.jaxpr_text import EquationPlace
from ..values.device_numbers import Numbers, coordinates

MAX_DEVICES = 4096
"""Devices of the largest mesh in which numbers are evaluated."""

Pairs = tuple[tuple[int, int], ...]


def pairs_of(flow: JaxprFlow, place: EquationPlace) -> tuple[tuple[AxisRef, ...], Pairs] | None:
    """Return the axes along which something is sent, and each partition that may send, with the one that it sends to.

    Partitions are numbered in row-major order of the mesh of the shard_map around. None where a number depends on more
    than the position in this mesh.
    """
    mapped = flow.shard_map_around(place)
    sizes = {} if mapped is None or mapped.equation.shard_map is None else dict(mapped.equation.shard_map.sizes)
    if not sizes or not place.equation.device or math.prod(sizes.values()) > MAX_DEVICES:
        return None
    is_number = "LOGICAL" in dict(place.equation.params).get("device_id_type", "").upper()
    axes, found, along = tuple(sizes), [], dict[str, None]()
    for source in coordinates(axes, sizes):
        if _is_passed_by(flow, place, Numbers(flow, sizes, source)):
            continue
        numbers = [Numbers(flow, sizes, source).value(At(place.jaxpr, atom)) for _, atom in place.equation.device]
        known = [number for number in numbers if number is not None]
        target = None
        if len(known) == len(numbers):
            named = [axis for axis, _ in place.equation.device]
            target = _by_number(known, sizes) if is_number else _by_axes(source, named, known, sizes)
        if target is None:
            return None
        along |= dict.fromkeys(axis for axis in axes if source[axis] != target[axis])
        found.append((_number(source, sizes), _number(target, sizes)))
    return tuple(AxisRef(axis) for axis in axes if axis in along), tuple(found)


def _is_passed_by(flow: JaxprFlow, place: EquationPlace, numbers: Numbers) -> bool:
    """Return whether a device is known to take other branches than those around an equation of a kernel."""
    for _ in range(len(flow.jaxprs)):
        callers = flow.callers.get(place.jaxpr, ())
        if len(callers) != 1 or is_kernel(callers[0].equation.primitive):
            return False
        (around,) = callers
        if around.equation.primitive == "cond":
            branches = [body for _, body in around.equation.bodies]
            taken = numbers.value(At(around.jaxpr, around.equation.inputs[0]))
            if taken is not None and branches.index(place.jaxpr) != max(0, min(taken, len(branches) - 1)):
                return branches.count(place.jaxpr) == 1
        place = around
    return False


def _by_number(numbers: Sequence[int], sizes: Mapping[str, int]) -> Mapping[str, int] | None:
    """The coordinates of the device that has this number among all."""
    if len(numbers) != 1 or not 0 <= numbers[0] < math.prod(sizes.values()):
        return None
    (rest,), found = numbers, dict[str, int]()
    for axis in reversed(list(sizes)):
        rest, found[axis] = divmod(rest, sizes[axis])
    return found


def _by_axes(
    source: Mapping[str, int], named: Sequence[str], numbers: Sequence[int], sizes: Mapping[str, int]
) -> Mapping[str, int] | None:
    """The coordinates of a device with these along its axes: along all of them, or those named, else the sender's."""
    named = named if any(named) else tuple(sizes)
    if len(named) != len(numbers) or not sizes.keys() >= set(named):
        return None
    found = {**source, **dict(zip(named, numbers, strict=True))}
    return found if all(0 <= found[axis] < sizes[axis] for axis in sizes) else None


def _number(device: Mapping[str, int], sizes: Mapping[str, int]) -> int:
    number = 0
    for axis, size in sizes.items():
        number = number * size + device[axis]
    return number
