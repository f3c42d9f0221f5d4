"""Places in the program and its texts, and all that belongs to one of them."""

from __future__ import annotations

from ...parsers.record import Record
from ...parsers.source import Frame, Span
from .collectives import Collective
from .findings import Finding
from .position import Confidence, own_frame
from .shardings import CollectiveCause, Conflict, ShardedValue, Why


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
