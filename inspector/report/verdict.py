"""Budgets, and the verdicts of a check."""

from __future__ import annotations

from typing import Literal

from ...parsers.record import Record
from . import Report
from .changes import Counted, Diff, Fingerprint


class Broken(Record, frozen=True):
    """A budget that is exceeded: `found` says by what, `transfers` by which collectives, if it is about them."""

    budget: Budget
    found: str
    transfers: Counted = ()


class Verdict(Record, frozen=True):
    """One function, checked. `changes` are those since the golden, None where there is none to compare with."""

    name: str
    report: Report
    found: Fingerprint
    changes: Diff | None
    budgets: tuple[Budget, ...]
    broken: tuple[Broken, ...]

    @property
    def differs(self) -> bool:
        """True if communication, or the sharding of arguments and outputs, differs from the golden."""
        return self.changes is not None and (self.changes.communication_differs or bool(self.changes.borders))

    @property
    def passed(self) -> bool:
        """True if nothing differs, no budget is exceeded, and no compiled program is wrong."""
        validation = self.report.capture.validation
        return not self.differs and not self.broken and (validation is None or validation.status != "differs")


class Budget(Record, frozen=True):
    """One limit: `most` collectives (of `kind`, over `axes`), bytes, seconds, or hundredths of the device's memory."""

    text: str
    measure: Literal["collectives", "implicit", "wire", "peak", "share", "time"]
    most: float = 0
    kind: str = ""
    axes: frozenset[str] = frozenset()
