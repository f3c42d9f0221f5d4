"""The result of a check: how a function differs from its golden, and which budgets it exceeds."""

from __future__ import annotations

from collections.abc import Sequence

from ..capture.model import CaptureError
from ..diff.diff import compare_outlines
from ..diff.outline import COMPARABLE, outline
from ..report import Report
from ..report.changes import Fingerprint
from ..report.verdict import Budget, Verdict
from .budget import broken
from .golden import comparable


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
