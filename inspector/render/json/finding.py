"""What is wrong, and what mends it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ... import report as values
from .source import Source, source_of


class FindingPlace(Struct, frozen=True):
    """What a finding is about; `start` and `end` are bytes in the shown text of `stage`, null where none shows it."""

    what: str
    stage: str | None
    start: int | None
    end: int | None
    source: Source


class Saves(Struct, frozen=True):
    """What the fix saves in one execution: bytes that a device sends, and the time of that on the target."""

    bytes: int | None
    seconds: float | None


class Finding(Struct, frozen=True):
    """One diagnostic at one place. `shardscope explain RULE` tells what `rule` looks for and what proves it."""

    rule: str
    slug: str
    severity: Literal["error", "warning", "info"]
    confidence: Literal["proved", "likely", "possible"]
    axes: list[str]
    message: str
    stage: str | None
    location: FindingPlace
    related: list[FindingPlace]
    evidence: dict[str, str]
    fix: str | None
    saves: Saves


class Suppressed(Struct, frozen=True):
    """A finding that is not told: for what reason, and in which line of which file that is said; 0 for settings."""

    finding: Finding
    reason: str
    file: str
    line: int


def suppressed_of(known: values.Suppressed) -> Suppressed:
    """A suppressed finding in its JSON shape."""
    return Suppressed(finding_of(known.finding), known.by.reason, known.by.file, known.by.line)


def finding_of(found: values.Finding) -> Finding:
    """A finding in its JSON shape."""
    return Finding(
        rule=found.rule,
        slug=found.slug,
        severity=found.severity,
        confidence=found.confidence,
        axes=list(found.axes),
        message=found.message,
        stage=found.place.stage,
        location=_place_of(found.place),
        related=list(map(_place_of, found.related)),
        evidence=dict(found.evidence),
        fix=found.fix,
        saves=Saves(found.saved_bytes, found.saved_seconds),
    )


def _place_of(place: values.FindingPlace) -> FindingPlace:
    start, end = (None, None) if place.span is None else (place.span.start, place.span.end)
    return FindingPlace(place.what, place.stage, start, end, source_of(place.source))
