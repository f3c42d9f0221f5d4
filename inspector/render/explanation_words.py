"""What is told of a function that failed, and of the changes that may let it trace."""

from __future__ import annotations

from collections.abc import Sequence

from ..report import Explanation, Remedy, Report


def failure_text(report: Report) -> str:
    """Why a capture ended, what to do next, and what is known of it; a line each."""
    failure, found = report.capture.failure, report.explanation
    lines = [] if failure is None else [failure.message, failure.hint]
    if found is not None:
        lines += [found.title, *(f"{verdict(remedy)}: {remedy.what}" for remedy in remedies_shown(found))]
    return "\n".join(filter(None, lines))


def remedies_shown(found: Explanation) -> Sequence[Remedy]:
    """Those that work; all of them, where none does."""
    working = [remedy for remedy in found.remedies if remedy.works]
    return working or found.remedies


def verdict(remedy: Remedy) -> str:
    """What came of trying it."""
    match remedy.works:
        case True:
            return "traces"
        case False:
            return f"does not trace ({remedy.why})"
    return "not tried"
