"""Places in the program and its texts, and all that belongs to one of them."""

from __future__ import annotations

from ...parsers.record import Record
from ...parsers.source import Frame, Span
from . import Collective, CollectiveCause, Confidence, Conflict, Finding, Report, ShardedValue, Why
from .position import own_frame, starts_at


class SourceLine(Record, frozen=True):
    """A line, counted from 1, of a file as the compiler's stack frames name it."""

    file: str
    line: int


class StagePlace(Record, frozen=True):
    """A byte offset in the text of a stage, as it is shown."""

    stage: str
    offset: int


class ProbePlace(Record, frozen=True):
    """A value that was looked at while the program ran: its number among the report's probes."""

    number: int


Place = SourceLine | StagePlace | Collective | ProbePlace | ShardedValue | Finding


class Selection(Record, frozen=True):
    """Everything that belongs to a place.

    `stack` is where it comes from, innermost first. `collective` is the one that stands at the place, or is the place;
    `collectives` are the listed ones that share its line, or correspond to it. `spans` are places in the text of the
    stage that was asked for, closest first. `confidence` is `exact` where they come from the very operation at the
    place, `name` where they share its line. `why` and `conflicts` tell of a value how it came to be sharded so, and
    `causes` of a collective what it is there for.
    """

    place: Place
    stack: tuple[Frame, ...] = ()
    collective: Collective | None = None
    collectives: tuple[Collective, ...] = ()
    spans: tuple[Span, ...] = ()
    confidence: Confidence = "name"
    why: tuple[Why, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    causes: tuple[CollectiveCause, ...] = ()

    @property
    def own_frame(self) -> int:
        """The number in the stack of the innermost frame of the user's program; 0 where there is none."""
        own = own_frame(self.stack)
        return 0 if own is None else self.stack.index(own)


def equation_span(report: Report, equation: str) -> Span | None:
    """Return the place in the jaxpr's text of an equation, by the id that `VariableVariance.equation` holds."""
    text = report.program.jaxpr
    equations = () if text is None else text.equations
    return next((place.span for place in equations if place.id == equation), None)


def collectives_of_line(report: Report, frame: Frame) -> tuple[Collective, ...]:
    """The listed collectives from a line; those from lines that it calls come last."""
    inside = [c for c in report.collectives if any(starts_at((one,), frame) for one in c.source.stack)]
    return tuple(sorted(inside, key=lambda c: not starts_at(c.source.stack, frame)))
