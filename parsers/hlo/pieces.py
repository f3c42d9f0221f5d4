"""A module's text cut into pieces, without a gap: what stands where, and what is between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..source import Span
from .module import HloModule

Kind = Literal["prologue", "header", "instruction", "end", "other"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text; `other` is white space, remarks, and what could not be read."""

    kind: Kind
    span: Span


def pieces(module: HloModule) -> Iterator[Piece]:
    """The pieces in text order: put together they are the text, byte for byte."""
    position = 0
    for piece in _read(module):
        if piece.span.start > position:
            yield Piece("other", Span(position, piece.span.start))
        if piece.span.end > piece.span.start:
            yield piece
        position = piece.span.end
    if position < len(module.source.data):
        yield Piece("other", Span(position, len(module.source.data)))


def _read(module: HloModule) -> Iterator[Piece]:
    yield Piece("prologue", module.prologue.span)
    for computation in module.computations:
        yield Piece("header", Span(computation.span.start, computation.body_start))
        for instruction in computation.instructions:
            yield Piece("instruction", instruction.span)
        yield Piece("end", Span(computation.body_end, computation.span.end))
