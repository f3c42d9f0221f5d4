"""Times of parts of a program, and of transfers."""

from __future__ import annotations

from ...parsers.record import Record
from ..report import Collective
from .lanes import Lanes
from .work import Work

NONE = Work()


class Span(Record, frozen=True):
    """The cost of a part of a program: seconds, those of them in which it waits for transfers, and its work.

    `unknown` names what is not in it: loops whose trip counts are not known, of which one round was counted, and
    kernels that say nothing of their time.
    """

    seconds: float = 0.0
    waiting: float = 0.0
    work: Work = NONE
    unknown: tuple[str, ...] = ()

    def __add__(self, other: Span) -> Span:
        return Span(
            self.seconds + other.seconds,
            self.waiting + other.waiting,
            self.work + other.work,
            tuple(dict.fromkeys((*self.unknown, *other.unknown))),
        )

    def times(self, count: int) -> Span:
        """So many of it, one after the other."""
        work = Work(self.work.flops * count, self.work.narrow * count, self.work.bytes * count)
        return Span(self.seconds * count, self.waiting * count, work, self.unknown)


class Transfer(Record, frozen=True):
    """The time that some collectives take on some links, and how long these are busy."""

    seconds: float
    transmitting: float
    lanes: Lanes
    collectives: tuple[Collective, ...] = ()

    def __add__(self, other: Transfer | None) -> Transfer:
        if other is None:
            return self
        lanes = None if self.lanes is None or other.lanes is None else self.lanes | other.lanes
        seconds, transmitting = self.seconds + other.seconds, self.transmitting + other.transmitting
        return Transfer(seconds, transmitting, lanes, (*self.collectives, *other.collectives))


def transfer_of(collective: Collective, lanes: Lanes) -> Transfer:
    """That of one collective, which takes no time where nothing is known of its links."""
    estimate = collective.estimate
    if estimate is None:
        return Transfer(0.0, 0.0, lanes, (collective,))
    busy = estimate.seconds if estimate.transmitting is None else estimate.transmitting
    return Transfer(estimate.seconds, busy, lanes, (collective,))
