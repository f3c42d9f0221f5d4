"""A text cut into pieces, without a gap: what stands where, and what is between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..source import Span
from .module import MlirModule
from .operation import OPERATIONS
from .structure import Aliases, BlockNode, Nest, RegionNode, Run

Kind = Literal["operation", "label", "alias", "other"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text; an operation with regions has several. `other` is white space, braces, comments, broken text."""

    kind: Kind
    span: Span


def pieces(module: MlirModule) -> Iterator[Piece]:
    """The pieces in text order: put together they are the text, byte for byte."""
    position = 0
    for piece in _read(module):
        if piece.span.start > position:
            yield Piece("other", Span(position, piece.span.start))
        if piece.span.end > piece.span.start:
            yield piece
        position = max(position, piece.span.end)
    if position < len(module.source.data):
        yield Piece("other", Span(position, len(module.source.data)))


def _read(module: MlirModule) -> Iterator[Piece]:
    waiting: list[RegionNode | BlockNode | Run | Aliases | Nest | Piece] = [module.text.outline[0]]
    while waiting:
        match waiting.pop():
            case Piece() as known:
                yield known
            case RegionNode(blocks):
                waiting += reversed(blocks)
            case BlockNode(label, items):
                waiting += reversed(items)
                if label:
                    yield Piece("label", label)
            case Aliases(span):
                yield Piece("alias", span)
            case Run(span):
                for match in OPERATIONS.finditer(module.source.data, span.start, span.end):
                    if match[1]:
                        yield Piece("operation", Span(*match.span(1)))
            case Nest(own, regions):
                for behind, region in zip(reversed(own[1:]), reversed(regions), strict=True):
                    waiting += (Piece("operation", behind), module.text.region(region))
                yield Piece("operation", own[0])
