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
    """Pieces with what is between them: put together they are the text, byte for byte.

    They are given in the order of their starts. Of one with others inside of it those parts are left that are in none.
    """
    position = 0
    around: list[Piece[Kind | Literal["other"]]] = [Piece("other", Span(0, length))]
    pieces: list[Piece[Kind | Literal["other"]]] = [*found, Piece("other", Span(length, length))]
    for piece in pieces:
        while around and position < piece.span.start:
            end = min(around[-1].span.end, piece.span.start)
            if end > position:
                yield Piece(around[-1].kind, Span(position, end))
                position = end
            if end < piece.span.start:
                around.pop()
        around.append(piece)
