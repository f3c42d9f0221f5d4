"""Operations without regions: where each of them is."""

from __future__ import annotations

from collections.abc import Iterator

from ..source import Span
from .patterns import OPERATIONS, for_bytes


def spans_in(data: bytes, run: Span) -> Iterator[Span]:
    """Where the operations in a run of them are."""
    for match in for_bytes(OPERATIONS).finditer(data, run.start, run.end):
        if match[1]:
            yield Span(*match.span(1))


def span_at(data: bytes, start: int, end: int | None = None) -> Span | None:
    """Where the operation without regions is that starts at an offset, or behind white space there."""
    match = for_bytes(OPERATIONS).match(data, start, len(data) if end is None else end)
    return Span(*match.span(1)) if match and match[1] else None
