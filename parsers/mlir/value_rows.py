"""The values of a function as rows: name, type, sharding and place, without reading each operation as a whole.

A row costs a few microseconds, so a table of a hundred thousand values opens at once. What a row does not tell is for
the `Operation` at its start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import ParseError
from ..garbage import collection_paused
from ..source import Span
from .function import Function
from .operation import Operation
from .patterns import HEAD_PARTS, for_bytes
from .runs import spans_in
from .sdy import Sharding
from .sdy_parser import parse_axes, parse_shardings
from .statement import result_names
from .structure import Aliases, BlockNode, Nest, Run
from .text import MlirText
from .types import MlirType

_NO_BRACKET = r'[^<>"]|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
_INNER = rf"<(?:{_NO_BRACKET})*+>"
_MIDDLE = rf"<(?:{_NO_BRACKET}|{_INNER})*+>"
_SHARDING = re.compile(
    rf"\bsdy\.sharding = (#sdy\.sharding(?:_per_value)?<(?:{_NO_BRACKET}|{_INNER}|{_MIDDLE})*+>)".encode()
)
_TYPES = re.compile(rb' : ([^\n"{}]*?)(?: (loc\([^\n]*\)))?\s*\Z')
_LOCATION = re.compile(rb"(loc\([^\n]*\))\s*\Z")
_MANUAL = re.compile(rb"\bmanual_axes=(\{[^{}]*\})")


class ValueRow(NamedTuple):
    """An operation with its results.

    `types` and `shardings` are those of its results; `shardings` is None where it has none. `regions` are the numbers
    of the regions around it, outermost first: a name that is defined in one of them is known here. `manual` are the
    mesh axes of the shard_maps around it. `own` is its text without its regions: the first and the last piece.
    `inside` are the numbers of its own regions.
    """

    start: int
    results: tuple[str, ...]
    name: str
    types: tuple[MlirType, ...]
    shardings: tuple[Sharding, ...] | None
    location: str | None
    regions: tuple[int, ...]
    manual: tuple[str, ...]
    own: tuple[Span, ...]
    nest: Nest | None
    inside: tuple[int, ...] = ()


def value_rows(function: Function) -> list[ValueRow]:
    """The rows of all operations in a function, in text order; those whose text cannot be read lack what that tells."""
    text = function.operation.text
    with collection_paused():
        return list(_walk(function, text))


def _walk(function: Function, text: MlirText) -> Iterator[ValueRow]:
    reader = _Reader(text)
    nest = function.operation.nest
    numbers = iter(range(1 << 62))
    waiting: list[tuple[BlockNode | Nest | Run | Aliases, tuple[int, ...], tuple[str, ...]]] = []

    def inside(nest: Nest, regions: tuple[int, ...], manual: tuple[str, ...]) -> tuple[int, ...]:
        found = []
        own = tuple(next(numbers) for _ in nest.regions)
        for number, region in zip(own, nest.regions, strict=True):
            found += [(block, (*regions, number), manual) for block in text.region(region).blocks]
        waiting.extend(reversed(found))
        return own

    if nest is not None:
        inside(nest, (), ())
    while waiting:
        item, regions, manual = waiting.pop()
        match item:
            case BlockNode(_, items):
                waiting.extend((each, regions, manual) for each in reversed(items))
            case Run(span):
                for operation in spans_in(text.source.data, span):
                    yield reader.plain(operation, regions, manual)
            case Nest():
                own = inside(item, regions, (*manual, *reader.manual_axes(item)))
                yield reader.nested(item, regions, manual, own)


class _Reader:
    """Equal texts are read once."""

    def __init__(self, text: MlirText) -> None:
        self.text = text
        self.data = text.source.data
        self._types: dict[tuple[str, bytes, int], tuple[MlirType, ...]] = {}
        self._shardings: dict[bytes, tuple[Sharding, ...] | None] = {}

    def plain(self, span: Span, regions: tuple[int, ...], manual: tuple[str, ...]) -> ValueRow:
        """The row of an operation without regions."""
        data = self.data[span.start : span.end]
        head = for_bytes(HEAD_PARTS).match(data)
        written, name = (head[1] or b"", _text(head[2] or head[3]).strip('"')) if head else (b"", "")
        results = _result_names(written)
        types = _TYPES.search(data, max(data.rfind(b" : "), 0))
        location = types[2] if types else None
        key = (name, types[1] if types else b"", len(results))
        if key not in self._types or not types:
            self._types[key] = self._read_types(Operation(self.text, span)) if results else ()
        shardings = self._sharding(data)
        where = None if location is None else _text(location)
        return ValueRow(span.start, results, name, self._types[key], shardings, where, regions, manual, (span,), None)

    def nested(
        self, nest: Nest, regions: tuple[int, ...], manual: tuple[str, ...], inside: tuple[int, ...]
    ) -> ValueRow:
        """The row of an operation with regions."""
        operation = Operation(self.text, nest.span, nest)
        last = self.data[nest.pieces[-1].start : nest.pieces[-1].end]
        location = _LOCATION.search(last)
        shardings = None
        for piece in nest.pieces:
            shardings = shardings or self._sharding(self.data[piece.start : piece.end])
        try:
            results = operation.results
        except ParseError:
            results = ()
        return ValueRow(
            nest.span.start,
            results,
            operation.name,
            self._read_types(operation),
            shardings,
            _text(location[1]) if location else None,
            regions,
            manual,
            nest.pieces,
            nest,
            inside,
        )

    def manual_axes(self, nest: Nest) -> tuple[str, ...]:
        """The axes that a shard_map makes manual in its body."""
        piece = nest.pieces[0]
        found = _MANUAL.search(self.data, piece.start, piece.end)
        if found is None:
            return ()
        try:
            return tuple(axis.name for axis in parse_axes(_text(found[1])))
        except ParseError:
            return ()

    def _read_types(self, operation: Operation) -> tuple[MlirType, ...]:
        try:
            return operation.result_types
        except ParseError:
            return ()

    def _sharding(self, data: bytes) -> tuple[Sharding, ...] | None:
        match = _SHARDING.search(data)
        if match is None:
            return None
        if match[1] not in self._shardings:
            self._shardings[match[1]] = self._parsed(_text(match[1]))
        return self._shardings[match[1]]

    def _parsed(self, written: str) -> tuple[Sharding, ...] | None:
        try:
            return parse_shardings(self.text.resolved(written))
        except ParseError:
            return None


def _result_names(written: bytes) -> tuple[str, ...]:
    try:
        return result_names(_text(written))
    except ValueError:
        return ()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
