"""What a rule is: words for the reader, and the function that looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..report import Certainty, Finding, FindingPlace, Report
from ..severity import Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """One diagnostic. `severity` is the usual one; a finding may have another.

    `finds`, `why` and `proof` are sentences: the pattern, what is bad about it, and what a finding rests on. `faulty`
    and `repaired` are the same few lines with the fault and without it. `check` looks at a report and gives what it
    found, made by `finding`.
    """

    id: str
    slug: str
    severity: Severity
    finds: str
    why: str
    proof: str
    faulty: str
    repaired: str
    check: Callable[[Report], Iterator[Finding]]
    threshold: float | None = None
    threshold_is: str = ""


def finding(
    rule: Rule,
    place: FindingPlace,
    message: str,
    *,
    confidence: Certainty,
    axes: tuple[str, ...] = (),
    severity: Severity | None = None,
    related: tuple[FindingPlace, ...] = (),
    evidence: tuple[tuple[str, str], ...] = (),
    fix: str | None = None,
    saved_bytes: int | None = None,
    saved_seconds: float | None = None,
) -> Finding:
    """What a rule found, of its own severity where no other is given."""
    return Finding(
        rule.id,
        rule.slug,
        severity or rule.severity,
        confidence,
        axes,
        message,
        place,
        related,
        evidence,
        fix,
        saved_bytes,
        saved_seconds,
    )
