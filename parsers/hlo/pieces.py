"""The pieces of an HLO text: its prologue, the headers and ends of computations, and instructions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ..pieces import Piece, without_gaps
from ..source import Span
from .module import HloModule

Kind = Literal["prologue", "header", "instruction", "end"]


def pieces(module: HloModule) -> Iterator[Piece[Kind | Literal["other"]]]:
    """The pieces of a module's text, in text order."""
    return without_gaps(sorted(_read(module), key=_place), len(module.source.data))


def _read(module: HloModule) -> Iterator[Piece[Kind | Literal["other"]]]:
    yield Piece("prologue", module.prologue.span)
    for computation in module.computations:
        if computation.is_nested:
            yield Piece("other", computation.span)
        yield Piece("header", Span(computation.span.start, computation.body_start))
        for instruction in computation.instructions:
            yield Piece("instruction", instruction.span)
        yield Piece("end", Span(computation.body_end, computation.span.end))


def _place(piece: Piece[str]) -> tuple[int, int]:
    return piece.span.start, -piece.span.end
