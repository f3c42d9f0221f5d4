"""Where in a program a value is taken: at which equation, and inside which shard_maps, loops and branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
    """Where a value was taken: its equation, which operand or result it is, and what is around it, outermost first.

    `when` is `before` or `after`; or `digest`, for the digest of a result; or `branch` and `count`, for what a
    conditional chose and how often a loop ran. `type` is the value's.
    """

    path: Path
    when: When
    position: int
    layers: tuple[Layer, ...]
    type: str


def slots_for(iterations: tuple[int, ...], length: int | None, around: Sequence[Layer]) -> tuple[int, ...]:
    """Which iterations of a loop are kept: fewer where the loops around it multiply them."""
    room = KEPT_AT_MOST
    for layer in around:
        if isinstance(layer, Looped):
            room //= len(layer.kept) + 1
    chosen = [number for number in iterations if length is None or number < length]
    return tuple(chosen[: max(1, room - 1)])
