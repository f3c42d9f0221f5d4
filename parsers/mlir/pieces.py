"""The pieces of an MLIR text: operations, of which one with regions has several, labels and aliases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ..pieces import Piece, without_gaps
from .module import MlirModule
from .runs import spans_in
from .structure import Aliases, BlockNode, Nest, RegionNode, Run

Kind = Literal["operation", "label", "alias"]


def pieces(module: MlirModule) -> Iterator[Piece[Kind | Literal["other"]]]:
    """The pieces of a module's text, in text order."""
    return without_gaps(_read(module), len(module.source.data))


def _read(module: MlirModule) -> Iterator[Piece[Kind]]:
    waiting: list[RegionNode | BlockNode | Run | Aliases | Nest | Piece[Kind]] = [module.text.outline[0]]
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
