"""What is told of the changes that may let a function trace."""

from __future__ import annotations

from collections.abc import Sequence

from ..report import Explanation, Remedy


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
