"""The use of mesh axes."""

from __future__ import annotations

from ...parsers.record import Record
from .communication import Strategy


class Part(Record, frozen=True):
    """Something that is sharded over an axis, and which share of its bytes."""

    what: str
    share: float


class Run(Record, frozen=True):
    """A strategy that runs over an axis: bytes that a device sends in a step, their time on the target, and the share
    of all bytes over the axis."""

    strategy: Strategy
    bytes: int
    seconds: float | None
    share: float


class AxisUse(Record, frozen=True):
    """An axis, the number of its devices, what it shards and what runs over it, largest first.

    `bytes` are all that a device sends over it in a step. `problem` says in which way that is not what it is for.
    """

    name: str
    size: int
    shards: tuple[Part, ...]
    runs: tuple[Run, ...]
    bytes: int
    problem: str = ""
