"""Purposes of a program's communication, with totals per step, and the use of mesh axes."""

from __future__ import annotations

from typing import Literal

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ..catalog.spellings import Kind
from .collectives import Collective

Strategy = Literal[
    "weight gathers",
    "input gathers",
    "gradient sync",
    "tensor parallelism",
    "reductions",
    "pipeline",
    "ring exchange",
    "halo exchange",
    "all-to-all exchange",
    "averages",
    "resharding",
    "scalar reductions",
    "other",
]


class StrategyTotal(Record, frozen=True):
    """The collectives of one kind over the same `axes` that serve one strategy; `other` where that is not decided.

    `wire_bytes` and `seconds` are of one step on each device, None where those of a collective or its executions are
    not known; `most_bytes` is their upper bound, where branches decide. `arguments` are the paths of what gathers move.
    `gradients` counts those of weights among what is summed: most of what gradient sync sums, and what the compiler
    combined with other strategies' sums.
    """

    strategy: Strategy
    kind: Kind
    axes: tuple[AxisRef, ...] | None
    collectives: tuple[Collective, ...]
    wire_bytes: int | None
    seconds: float | None
    arguments: tuple[str, ...] = ()
    gradients: int = 0
    most_bytes: int | None = None

    @property
    def is_planned(self) -> bool:
        """True if shardings of a program are chosen for the sake of this strategy."""
        return self.strategy not in ("input gathers", "resharding", "reductions", "other")


class Sharded(Record, frozen=True):
    """Something that is sharded over an axis, and which share of its bytes."""

    what: str
    share: float


class Use(Record, frozen=True):
    """A strategy that runs over an axis: bytes that a device sends in a step, their time on the target, and the share
    of all bytes over the axis.
    """

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
    shards: tuple[Sharded, ...]
    runs: tuple[Use, ...]
    bytes: int
    problem: str = ""
