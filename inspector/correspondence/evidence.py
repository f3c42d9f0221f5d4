"""Evidence that two stages hold the same operation: the one order in which it counts, and the confidence it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from ...parsers.record import Record
from ..report import Confidence
from ..report.links import Evidence as Evidence

T = TypeVar("T")


class Match(Record, Generic[T], frozen=True):
    """The operations that the strongest evidence leads to, the likeliest first; none where there is no evidence."""

    found: Sequence[T] = ()
    evidence: Evidence | None = None

    @property
    def rivals(self) -> int:
        """Operations besides the first one with as much evidence."""
        return max(0, len(self.found) - 1)

    @property
    def confidence(self) -> Confidence:
        """Confidence that the first one is meant."""
        return confidence_of(self.evidence, self.rivals)


def confidence_of(evidence: Evidence | None, rivals: int) -> Confidence:
    """Return the confidence in an operation with this evidence, and as many rivals with the same."""
    match evidence:
        case None:
            return "none"
        case Evidence.NUMBER | Evidence.OPERAND if not rivals:
            return "exact"
        case Evidence.NAME_AND_LINE if not rivals:
            return "name"
    return "shape"


def strongest(ways: Mapping[Evidence, Callable[[], Sequence[T]]]) -> Match[T]:
    """Look by each way in the order of their evidence, up to the first that leads to anything."""
    for evidence in Evidence:
        if evidence in ways and (found := ways[evidence]()):
            return Match(found, evidence)
    return Match()


def narrowed(found: Sequence[T], *wanted: Callable[[T], bool]) -> list[T]:
    """Return those that are as wanted, one wish after the other, where any are."""
    left = list(found)
    for each in wanted:
        left = [one for one in left if each(one)] or left
    return left
