"""Modules, functions, regions, blocks and operations: what is inside what, as a tree of spans.

The grammar `structure.lark` says how they are nested. Its terminals are large pieces of text, which `patterns.py`
describes: all operations up to the next region are one. So the tree has as many nodes as the text has regions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..errors import Problem
from ..grammar import Grammar
from ..record import Record
from ..source import Source, Span
from .patterns import ALIAS, HEAD, LABEL, OPERATION, REGION, RESOURCES, REST, TRIVIA, for_bytes


class Run(Record, frozen=True):
    """Operations without regions, one after the other."""

    span: Span


class Aliases(Record, frozen=True):
    """Definitions of aliases, one after the other."""

    span: Span


class Nest(Record, frozen=True):
    """An operation with regions. Its own text is in `pieces`: before, between and behind the braces.

    A region that was left for later is the span of its text.
    """

    pieces: tuple[Span, ...]
    regions: tuple[RegionNode | Span, ...]

    @property
    def span(self) -> Span:
        """All of the operation."""
        return Span(self.pieces[0].start, self.pieces[-1].end)


class BlockNode(Record, frozen=True):
    """A block: its label, which the first one of a region may lack, and what is in it."""

    label: Span | None
    items: tuple[Run | Aliases | Nest, ...]


class RegionNode(Record, frozen=True):
    """The blocks of a region. The first one is empty where the region begins with a label."""

    blocks: tuple[BlockNode, ...]


class _Body(Record, frozen=True):
    """A region that is left for later."""

    span: Span


def structure(source: Source, span: Span, bodies: Sequence[Span] = ()) -> tuple[RegionNode, tuple[Problem, ...]]:
    """The tree of a part of a text, and what in it does not fit.

    `bodies` are regions in it, without their braces and in text order, which are left for later. A piece that does not
    fit is reported and left out; regions that are open at the end are closed there.
    """
    return _parsed(source, span, _pieces(source.data, span, bodies))


def nest_at(source: Source, start: int) -> Nest | None:
    """The operation with regions that starts at an offset, if one does."""
    span = Span(start, len(source.data))
    tree, _ = _parsed(source, span, _up_to_last_close(_pieces(source.data, span, ())))
    first = next(iter(tree.blocks[0].items), None)
    return first if isinstance(first, Nest) and first.span.start == start else None


class _Piece(NamedTuple):
    """A terminal of the grammar: its kind and its place."""

    kind: str
    span: Span


def _parsed(source: Source, span: Span, pieces: Iterable[_Piece]) -> tuple[RegionNode, tuple[Problem, ...]]:
    parser = _GRAMMAR.fed_by_hand()
    problems = []
    depth = 0
    after_body = False
    for kind, place in pieces:
        if after_body and kind not in ("CLOSE", "NEXT"):
            start = Span(place.start, place.start)
            problems.append(Problem("a function is not closed", source, start, ("'}'",)))
            parser.feed("CLOSE", start)
            depth -= 1
        after_body = kind == "BODY"
        match kind:
            case "OPEN":
                depth += 1
            case "CLOSE" | "NEXT" if depth == 0:
                brace = Span(place.start - 1, place.start)
                problems.append(Problem("this brace closes nothing", source, brace))
                continue
            case "CLOSE":
                depth -= 1
            case "BROKEN":
                problems.append(Problem("not MLIR", source, place, ("an operation", "a block", "'}'")))
                continue
        parser.feed(kind, place)
    end = Span(span.end, span.end)
    if depth:
        problems.append(Problem("a region is not closed", source, end, ("'}'",)))
    for _ in range(depth):
        parser.feed("CLOSE", end)
    tree = parser.end()
    assert isinstance(tree, RegionNode)
    return tree, tuple(problems)


_TOKEN = (
    f"{TRIVIA}(?:"
    rf"(?P<OPERATIONS>(?:{OPERATION}{TRIVIA})++)"
    # What has no region behind it is among those operations, or closes one.
    rf"|(?P<HEAD>{HEAD}|\}})(?P<REST>{REST})(?P<REGION>{REGION})?+"
    rf"|(?P<LABEL>{LABEL})"
    rf"|(?P<ALIASES>(?:{ALIAS}{REST}{TRIVIA})++)"
    rf"|(?P<RESOURCES>{RESOURCES})"
    r"|(?P<BROKEN_OPEN>[^\n]++(?<=\{))"
    r"|(?P<BROKEN>[^\n]++)"
    # White space at the end matches too: a search would go on inside a comment.
    r"|\Z)"
)


def _pieces(data: bytes, span: Span, bodies: Sequence[Span]) -> Iterator[_Piece]:
    start = span.start
    for body in bodies:
        before = None
        for piece in _lexed(data, start, body.start):
            before = piece.kind
            yield piece
        # What is in front of a body can be too broken to open one.
        if before == "OPEN":
            yield _Piece("BODY", body)
        else:
            yield from _lexed(data, body.start, body.end)
        start = body.end
    yield from _lexed(data, start, span.end)


def _lexed(data: bytes, start: int, end: int) -> Iterator[_Piece]:
    for match in for_bytes(_TOKEN).finditer(data, start, end):
        match match.lastgroup:
            case None | "RESOURCES":
                pass
            case "REST" | "REGION" if match["HEAD"] == b"}":
                yield _Piece("NEXT" if match["REGION"] else "CLOSE", Span(*match.span("REST")))
            case "REST" | "REGION":
                yield _Piece("OPEN", Span(match.start("HEAD"), match.end("REST")))
            case "BROKEN_OPEN":
                # A broken line that opens a region does so all the same: the brace that closes it will come.
                span = Span(*match.span("BROKEN_OPEN"))
                yield _Piece("BROKEN", span)
                yield _Piece("OPEN", span)
            case kind:
                yield _Piece(kind, Span(*match.span(kind)))


def _up_to_last_close(pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    depth = 0
    for piece in pieces:
        yield piece
        depth += {"OPEN": 1, "CLOSE": -1}.get(piece.kind, 0)
        if depth == 0:
            return


def _nest(*parts: Span | RegionNode | _Body) -> Nest:
    pieces = tuple(part for part in parts if isinstance(part, Span))
    regions = (part.span if isinstance(part, _Body) else part for part in parts if not isinstance(part, Span))
    return Nest(pieces, tuple(regions))


_GRAMMAR = Grammar(
    "structure",
    {
        "start": lambda region: region,
        "region": lambda *blocks: RegionNode(blocks),
        "first_block": lambda *items: BlockNode(None, items),
        "block": lambda label, *items: BlockNode(label, items),
        "operations": Run,
        "aliases": Aliases,
        "nest": _nest,
        "body": _Body,
    },
)
