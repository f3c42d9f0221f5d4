"""The time line of a device by the cost model: one step from its start to its end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal

from ...parsers.hlo import Instruction
from ...parsers.record import Record
from .collectives import Collective
from .position import SourcePosition

Lane = Literal["compute", "links", "copies"]
"""A busy resource: the device itself, the links to other devices, or the engine that copies between memories."""


class Activity(Record, frozen=True):
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
        """Duration in seconds."""
        return self.end - self.start

    @property
    def source(self) -> SourcePosition:
        """The line that it comes from."""
        return SourcePosition.exact(self.instruction.frames)


class Moment(Record, frozen=True):
    """An activity of a step, from its second of `start` to that of `end`.

    Of transfers that go on at once each has another number `beside` the others, from 0.
    """

    activity: Activity
    start: float
    end: float
    beside: int = 0


class Timeline(Record, frozen=True):
    """One step on each device of a chip; `total` seconds, of which `exposed` are spent waiting for transfers.

    `memory` are the bytes that are alive from a second on, before values share buffers; empty where that is not known.
    `at_peak` is the instruction at which most are.
    """

    chip: str
    total: float
    exposed: float
    activities: tuple[Activity, ...]
    memory: tuple[tuple[float, int], ...] = ()
    at_peak: Instruction | None = None

    @property
    def peak(self) -> int:
        """The most bytes that are alive."""
        return max((size for _, size in self.memory), default=0)

    def is_longer(self, most: int) -> bool:
        """Return whether there are more activities than that."""
        return next(islice(_unrolled(self.activities, 0.0), most, None), None) is not None

    def unrolled(self, most: int) -> Iterator[Moment]:
        """At most so many activities in the order of the schedule, loops round by round."""
        busy: list[float] = []
        for activity, entered in islice(_unrolled(self.activities, 0.0), most):
            start, end, beside = entered + activity.start, entered + activity.end, 0
            if activity.lane == "links":
                beside = next((number for number, until in enumerate(busy) if until <= start), len(busy))
                busy[beside : beside + 1] = [end]
            yield Moment(activity, start, end, beside=beside)


def _unrolled(activities: tuple[Activity, ...], entered: float) -> Iterator[tuple[Activity, float]]:
    for activity in activities:
        yield activity, entered
        if activity.inside:
            rounds = activity.rounds or 1
            for number in range(rounds):
                yield from _unrolled(activity.inside, entered + activity.start + number * activity.seconds / rounds)
