"""The values of a function as rows: name, type, sharding and place, without reading each operation as a whole.

A row costs a few microseconds, so a table of a hundred thousand values opens at once. What a row does not tell is for
the `Operation` at its start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from ..errors import readable
from ..garbage import collection_paused
from ..source import Span
from .function import Function
from .operation import Operation
from .patterns import SDY_VALUE, TYPES
from .scan import spans_in
from .sdy import Sharding
from .sdy_parser import parse_axes, parse_shardings
from .statement import Head, read_head, result_names
from .structure import Aliases, BlockNode, Nest, Run
from .text import MlirText
from .types import MlirType

_KEY = b"sdy.sharding = "
_SHARDING = re.compile(rf"(?<!\w)sdy\.sharding = ({SDY_VALUE})".encode())
_TYPES = re.compile(rf"({TYPES})(loc\([^\n]*\))?\s*\Z".encode())
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
        head = read_head(self.text.source, span.start)
        results = _names(head)
        colon = self.data.rfind(b" : ", head.end - 1, span.end)
        found = _TYPES.match(self.data, colon + 3, span.end) if colon >= 0 else None
        if found is None:
            operation = Operation(self.text, span)
            types, location = _types(operation), _location(operation)
        else:
            location = None if found[2] is None else _text(found[2])
            key = (head.name, found[1], len(results))
            if key not in self._types:
                self._types[key] = _types(Operation(self.text, span)) if results else ()
            types = self._types[key]
        shardings = self._sharding(span)
        return ValueRow(span.start, results, head.name, types, shardings, location, regions, manual, (span,), None)

    def nested(
        self, nest: Nest, regions: tuple[int, ...], manual: tuple[str, ...], inside: tuple[int, ...]
    ) -> ValueRow:
        """The row of an operation with regions."""
        operation = Operation(self.text, nest.span, nest)
        location = _LOCATION.search(self.data, nest.pieces[-1].start, nest.pieces[-1].end)
        return ValueRow(
            nest.span.start,
            _names(operation.head),
            operation.name,
            _types(operation),
            next(filter(None, map(self._sharding, nest.pieces)), None),
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
        axes = readable(lambda: parse_axes(_text(found[1]))) or ()
        return tuple(axis.name for axis in axes)

    def _sharding(self, piece: Span) -> tuple[Sharding, ...] | None:
        start = self.data.find(_KEY, piece.start, piece.end)
        match = _SHARDING.match(self.data, start, piece.end) if start >= 0 else None
        if match is None:
            return None
        if match[1] not in self._shardings:
            written = self.text.resolved(_text(match[1]))
            self._shardings[match[1]] = readable(partial(parse_shardings, written))
        return self._shardings[match[1]]


def _names(head: Head) -> tuple[str, ...]:
    try:
        return result_names(head.results)
    except ValueError:
        return ()


def _types(operation: Operation) -> tuple[MlirType, ...]:
    return readable(lambda: operation.result_types) or ()


def _location(operation: Operation) -> str | None:
    return readable(lambda: operation.statement.location)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
