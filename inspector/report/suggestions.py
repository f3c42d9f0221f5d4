"""Suggested PartitionSpecs of a program, as they were measured."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from ...parsers.record import Record
from .findings import Edit, Experiment
from .report import Report


class Suggestion(Record, frozen=True):
    """An assignment: what is requested otherwise, and what was measured. Today's requests nothing else.

    `arguments` and `results` are the paths of those that get another spec, with that; results also where they are next
    values of arguments. `requests` are in words, None of today's: `x: P('data')`, or `constrain this to P('data')
    instead of P() (line 4)`. `edits` make the same requests in the source, which was compiled; empty where no edit is
    known to. `is_best` is set where no other row is both faster and takes less memory.
    """

    experiment: Experiment
    arguments: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)
    requests: tuple[str, ...] | None = None
    edits: tuple[Edit, ...] = ()
    is_best: bool = False

    @property
    def cost(self) -> float:
        """Seconds of a step on the target; without one, bytes that a device sends."""
        after = self.experiment.after
        return float((after.seconds if after.seconds is not None else after.bytes) or 0.0)

    @property
    def memory(self) -> int:
        """Peak memory of a device."""
        return self.experiment.after.memory or 0


class Suggestions(Record, frozen=True):
    """The rows, the cheapest first and today's among them, and how many assignments there are."""

    report: Report
    rows: tuple[Suggestion, ...]
    size: int
    priced: int
