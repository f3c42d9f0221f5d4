"""What is told of a function that failed, and of the changes that may let it trace."""

from __future__ import annotations

from collections.abc import Sequence

from ..report import Explanation, Fix, Report


def failure_text(report: Report) -> str:
    """Why a capture ended, what to do next, and what is known of it; a line each."""
    failure, found = report.capture.failure, report.explanation
    lines = [] if failure is None else [failure.message, failure.hint]
    if found is not None:
        lines += [found.title, *(f"{verdict(fix)}: {fix.title}" for fix in fixes_shown(found))]
    return "\n".join(filter(None, lines))


def fixes_shown(found: Explanation) -> Sequence[Fix]:
    """Those that work; all of them, where none does."""
    working = [fix for fix in found.fixes if fix.verified]
    return working or found.fixes


def verdict(fix: Fix) -> str:
    """What came of trying it."""
    if fix.trial is None:
        return "not tried"
    return "traces" if fix.verified else f"does not trace ({fix.trial.why})"
