"""A text cut into pieces, without a gap: what stands where, and what is between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from .source import Span

Kind = TypeVar("Kind", bound=str, covariant=True)


@dataclass(frozen=True, slots=True)
class Piece(Generic[Kind]):
    """A piece of text; `other` is white space, braces, remarks, and what could not be read."""

    kind: Kind
    span: Span


def without_gaps(found: Iterable[Piece[Kind]], length: int) -> Iterator[Piece[Kind | Literal["other"]]]:
    """Pieces in text order with what is between them: put together they are the text, byte for byte."""
    position = 0
    for piece in found:
        if piece.span.start > position:
            yield Piece("other", Span(position, piece.span.start))
        if piece.span.end > piece.span.start:
            yield piece
        position = max(position, piece.span.end)
    if position < length:
        yield Piece("other", Span(position, length))
