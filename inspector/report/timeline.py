"""What a device does when, by the cost model: one step from its start to its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from ...parsers.hlo import Instruction
from .collectives import Collective
from .position import SourcePosition

Lane = Literal["compute", "links", "copies"]
"""What is busy: the device itself, the links to other devices, or the engine that copies between memories."""


@dataclass(frozen=True, slots=True)
class Activity:
    """An instruction that takes time, in seconds since its computation was entered: the step, or a round of its loop.

    `exposed` are the seconds of a transfer in which the device does nothing else. A loop has its `rounds`, None where
    their number is not known and one is shown, and what is `inside` one of them.
    """

    lane: Lane
    instruction: Instruction
    start: float
    end: float
    exposed: float = 0.0
    collectives: tuple[Collective, ...] = ()
    rounds: int | None = 1
    inside: tuple[Activity, ...] = ()

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return self.end - self.start

    @property
    def source(self) -> SourcePosition:
        """The line that it comes from."""
        return SourcePosition.exact(self.instruction.frames)


@dataclass(frozen=True, slots=True)
class Timeline:
    """One step on each device of a chip; `total` seconds, of which `exposed` are spent waiting for transfers."""

    chip: str
    total: float
    exposed: float
    activities: tuple[Activity, ...]

    def unrolled(self, most: int) -> Iterator[tuple[Activity, float, int]]:
        """At most so many activities in the order of the schedule, loops round by round.

        Each with the second at which its computation was entered, and how many loops it is in.
        """
        return islice(_unrolled(self.activities, 0.0, 0), most)


def _unrolled(activities: tuple[Activity, ...], entered: float, depth: int) -> Iterator[tuple[Activity, float, int]]:
    for activity in activities:
        yield activity, entered, depth
        rounds = activity.rounds or 1
        for number in range(rounds if activity.inside else 0):
            begun = entered + activity.start + number * activity.seconds / rounds
            yield from _unrolled(activity.inside, begun, depth + 1)
