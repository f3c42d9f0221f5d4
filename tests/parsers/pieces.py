"""A module's text cut into pieces, without a gap: what stands where, and what is between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shardscope.parsers.hlo import HloModule
from shardscope.parsers.mlir import MlirModule
from shardscope.parsers.mlir.scan import spans_in
from shardscope.parsers.mlir.structure import Aliases, BlockNode, Nest, RegionNode, Run
from shardscope.parsers.source import Span


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text; `other` is white space, braces, remarks, and what could not be read."""

    kind: str
    span: Span


def without_gaps(found: Iterable[Piece], length: int) -> Iterator[Piece]:
    """Pieces with what is between them: put together they are the text, byte for byte.

    They are given in the order of their starts. Of one with others inside of it those parts are left that are in none.
    """
    position = 0
    around: list[Piece] = [Piece("other", Span(0, length))]
    pieces: list[Piece] = [*found, Piece("other", Span(length, length))]
    for piece in pieces:
        while around and position < piece.span.start:
            end = min(around[-1].span.end, piece.span.start)
            if end > position:
                yield Piece(around[-1].kind, Span(position, end))
                position = end
            if end < piece.span.start:
                around.pop()
        around.append(piece)


def mlir_pieces(module: MlirModule) -> Iterator[Piece]:
    """The pieces of a module's text, in text order."""
    return without_gaps(_of_mlir(module), len(module.source.data))


def _of_mlir(module: MlirModule) -> Iterator[Piece]:
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
                for operation in spans_in(module.source.data, span):
                    yield Piece("operation", operation)
            case Nest(own, regions):
                for behind, region in zip(reversed(own[1:]), reversed(regions), strict=True):
                    waiting += (Piece("operation", behind), module.text.region(region))
                yield Piece("operation", own[0])


def hlo_pieces(module: HloModule) -> Iterator[Piece]:
    """The pieces of a module's text, in text order."""
    return without_gaps(sorted(_of_hlo(module), key=_place), len(module.source.data))


def _of_hlo(module: HloModule) -> Iterator[Piece]:
    yield Piece("prologue", module.prologue.span)
    for computation in module.computations:
        if computation.is_nested:
            yield Piece("other", computation.span)
        yield Piece("header", Span(computation.span.start, computation.body_start))
        for instruction in computation.instructions:
            yield Piece("instruction", instruction.span)
        yield Piece("end", Span(computation.body_end, computation.span.end))


def _place(piece: Piece) -> tuple[int, int]:
    return piece.span.start, -piece.span.end
