"""The devices that a kernel's copies and signals go to, from the numbers that name them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...parsers.sharding_syntax.mesh import AxisRef
from ..catalog.spellings import is_kernel
from ..dataflow.device_integers import MAX_EVALUATED, Numbers, coordinates, position
from ..dataflow.jaxpr import At, JaxprFlow
from ..ir.jaxpr_text import EquationPlace

Pairs = tuple[tuple[int, int], ...]
Guard = tuple[At, int, int]
"""The predicate of a conditional, the branch that an equation stands in, and the number of branches."""


@dataclass(slots=True)
class Budget:
    """The equations that may still be evaluated for one program, on all devices together: about a second's."""

    left: int = 300_000


def pairs_of(flow: JaxprFlow, place: EquationPlace, budget: Budget) -> tuple[tuple[AxisRef, ...], Pairs] | None:
    """Return the axes along which something is sent, and each partition that may send, with the one that it sends to.

    Partitions are numbered in row-major order of the mesh of the shard_map around. None where a number depends on more
    than the position in this mesh, and where the budget is spent.
    """
    mapped, atoms = flow.shard_map_around(place), place.equation.device
    sizes = {} if mapped is None or mapped.equation.shard_map is None else dict(mapped.equation.shard_map.sizes)
    if not 0 < len(atoms) <= len(sizes):
        return None
    # A reference on another GPU says it among its transforms.
    types = (text for name, text in place.equation.params if name == "device_id_type" or "PeerMemRef" in text)
    is_number = any("LOGICAL" in text.upper() for text in types)
    axes, guards, found, along = tuple(sizes), list(_guards(flow, place)), [], dict[str, None]()
    for partition, source in enumerate(coordinates(axes, sizes)):
        numbers = Numbers(flow, sizes, source)
        is_passed_by = any(_takes_another(numbers, *guard) for guard in guards)
        values = [] if is_passed_by else [numbers.value(At(place.jaxpr, atom)) for _, atom in atoms]
        budget.left -= 1 + MAX_EVALUATED - numbers.left
        if budget.left < 0:
            return None
        if is_passed_by:
            continue
        known, target = [value for value in values if value is not None], None
        if len(known) == len(values):
            named = [axis for axis, _ in atoms]
            target = _by_number(known, sizes) if is_number else _by_axes(source, named, known, sizes)
        if target is None:
            return None
        along |= dict.fromkeys(axis for axis in axes if source[axis] != target[axis])
        found.append((partition, position(target, axes, sizes)))
    return tuple(AxisRef(axis) for axis in axes if axis in along), tuple(found)


def _guards(flow: JaxprFlow, place: EquationPlace) -> Iterator[Guard]:
    """Yield the conditionals around an equation of a kernel, innermost first."""
    for _ in range(len(flow.jaxprs)):
        callers = flow.callers.get(place.jaxpr, ())
        if len(callers) != 1 or is_kernel(callers[0].equation.primitive):
            return
        (around,) = callers
        branches = [body for _, body in around.equation.bodies]
        if around.equation.primitive == "cond" and around.equation.inputs and branches.count(place.jaxpr) == 1:
            yield At(around.jaxpr, around.equation.inputs[0]), branches.index(place.jaxpr), len(branches)
        place = around


def _takes_another(numbers: Numbers, predicate: At, branch: int, branches: int) -> bool:
    """Return whether a device is known to take another branch than this one of a conditional."""
    taken = numbers.value(predicate)
    return taken is not None and max(0, min(taken, branches - 1)) != branch


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
