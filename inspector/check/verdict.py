"""The result of a check: how a function differs from its golden, and which budgets it exceeds."""

from __future__ import annotations

from collections.abc import Sequence

from ...parsers.record import Record
from ..capture.model import CaptureError
from ..diff.diff import Diff, compare_outlines
from ..diff.outline import COMPARABLE, Fingerprint, outline
from ..report import Report
from .budget import Broken, Budget, broken
from .golden import comparable


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


def judge(name: str, report: Report, golden: Fingerprint | None, budgets: Sequence[Budget]) -> Verdict:
    """Check a report against a golden, at the stage that this keeps, and against budgets.

    Raises:
        CaptureError: the report has no such stage.
    """
    names = COMPARABLE if golden is None else (golden.stage,)
    stage = next(filter(None, map(report.program.stage, names)), None)
    if stage is None:
        raise CaptureError(f"{name} has no text of {' or '.join(names)} to check")
    found = outline(report, stage)
    return Verdict(
        name,
        report,
        found,
        None if golden is None else compare_outlines(golden, comparable(found)),
        tuple(budgets),
        broken(budgets, found, report.peak),
    )
