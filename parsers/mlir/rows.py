"""The operations of a function as rows: results, name, types, sharding and place, without reading each as a whole.

A row costs a few microseconds, so a table of a hundred thousand values opens at once. What else is written at an
operation is found by a search for its name in the operation's text. Where the text is not plain enough for that, the
operation is read as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from ..errors import ParseError, readable
from ..expressions import compiled
from ..garbage import collection_paused
from ..source import Span
from .function import Function
from .operation import Operation
from .patterns import SDY_VALUE, STRING, TYPES, USE
from .scan import spans_in
from .sdy import Origins, PropagationStep, Sharding, ShardingRule
from .sdy_parser import parse_axes, parse_each_origins, parse_propagation, parse_sharding_rule, parse_shardings
from .statement import read_head
from .structure import Aliases, BlockNode, Nest, Run
from .types import MlirType

T = TypeVar("T")

_TYPES = compiled(rf"({TYPES})(loc\([^\n]*\))?\s*\Z".encode())
_LOCATION = compiled(rb"(loc\([^\n]*\))\s*\Z")
_MANUAL = compiled(rb"\bmanual_axes=(\{[^{}]*\})")
_USE = compiled(USE.encode())
_INITIAL = b" init: "
_VALUE = compiled(rf'({SDY_VALUE}|\[(?:[^\[\]"]++|{STRING})*+\])(?=[,}}])'.encode())
"""The value of an attribute: one of Shardy's, or a list."""


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


class FunctionRows:
    """The rows of a function, and what is written at them; equal texts are read once."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.text = function.operation.text
        self._data = self.text.source.data
        self._types: dict[tuple[str, bytes, int], tuple[MlirType, ...]] = {}
        self._parsed: dict[bytes, dict[bytes, Any]] = defaultdict(dict)
        self._rules: dict[int, ShardingRule | None] = {}

    @cached_property
    def rows(self) -> Sequence[ValueRow]:
        """All operations, in text order; those whose text cannot be read lack what that tells."""
        with collection_paused():
            return list(self._walk())

    def _walk(self) -> Iterator[ValueRow]:
        nest = self.function.operation.nest
        numbers = iter(range(1 << 62))
        waiting: list[tuple[BlockNode | Nest | Run | Aliases, tuple[int, ...], tuple[str, ...]]] = []

        def inside(nest: Nest, regions: tuple[int, ...], manual: tuple[str, ...]) -> tuple[int, ...]:
            found = []
            own = tuple(next(numbers) for _ in nest.regions)
            for number, region in zip(own, nest.regions, strict=True):
                found += [(block, (*regions, number), manual) for block in self.text.region(region).blocks]
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
                    for operation in spans_in(self._data, span):
                        yield self._plain(operation, regions, manual)
                case Nest():
                    own = inside(item, regions, (*manual, *self._manual_axes(item)))
                    yield self._nested(item, regions, manual, own)

    def _plain(self, span: Span, regions: tuple[int, ...], manual: tuple[str, ...]) -> ValueRow:
        """The row of an operation without regions."""
        head = read_head(self.text.source, span.start)
        results = head.names
        colon = self._data.rfind(b" : ", head.end - 1, span.end)
        found = _TYPES.match(self._data, colon + 3, span.end) if colon >= 0 else None
        if found is None:
            operation = Operation(self.text, span)
            types, location = _types(operation), readable(lambda: operation.statement.location)
        else:
            location = None if found[2] is None else _text(found[2])
            key = (head.name, found[1], len(results))
            if key not in self._types:
                self._types[key] = _types(Operation(self.text, span)) if results else ()
            types = self._types[key]
        has_sharding = self._data.find(b"sdy.sharding", span.start, span.end) >= 0
        shardings = self._read((span,), None, b"sdy.sharding", parse_shardings) if has_sharding else None
        return ValueRow(span.start, results, head.name, types, shardings, location, regions, manual, (span,), None)

    def _nested(
        self, nest: Nest, regions: tuple[int, ...], manual: tuple[str, ...], inside: tuple[int, ...]
    ) -> ValueRow:
        """The row of an operation with regions."""
        operation = Operation(self.text, nest.span, nest)
        types, shardings = _types(operation), self._read(nest.pieces, nest, b"sdy.sharding", parse_shardings)
        found = _LOCATION.search(self._data, nest.pieces[-1].start, nest.pieces[-1].end)
        start, results, location = nest.span.start, operation.results, _text(found[1]) if found else None
        return ValueRow(
            start, results, operation.name, types, shardings, location, regions, manual, nest.pieces, nest, inside
        )

    def _manual_axes(self, nest: Nest) -> tuple[str, ...]:
        """The axes that a shard_map makes manual in its body."""
        found = _MANUAL.search(self._data, nest.pieces[0].start, nest.pieces[0].end)
        axes = None if found is None else readable(lambda: parse_axes(_text(found[1])))
        return tuple(axis.name for axis in axes or ())

    def operation(self, row: ValueRow) -> Operation:
        """The operation of a row, as a whole."""
        return Operation(self.text, Span(row.start, row.own[-1].end), row.nest)

    def operands(self, row: ValueRow) -> tuple[str, ...]:
        """The names of its operands; none of one that cannot be read."""
        span, data = row.own[0], self._data
        if row.nest is not None or (row.name.startswith("sdy.") and row.name != "sdy.sharding_constraint"):
            return self._all_operands(row)
        start = read_head(self.text.source, span.start).end
        # Behind the types and the attributes there are no operands.
        end = data.find(b" : ", start, span.end)
        braces = data.find(b"{", start, span.end if end < 0 else end)
        end = end if braces < 0 else braces
        if end < 0 or data.find(b'"', start, end) >= 0:
            return self._all_operands(row)
        names = tuple(name.decode() for name in _USE.findall(data, start, end))
        if data.find(_INITIAL, start, end) < 0:
            return names
        return (*names[::2], *names[1::2]) if len(names) % 2 == 0 else self._all_operands(row)

    def _all_operands(self, row: ValueRow) -> tuple[str, ...]:
        return readable(lambda: self.operation(row).operands) or ()

    def rule(self, row: ValueRow) -> ShardingRule | None:
        """Return the relation between the dimensions of operands and results; None if it is not recorded."""
        if row.start not in self._rules:
            self._rules[row.start] = self._read(row.own, row.nest, b"sdy.sharding_rule", parse_sharding_rule)
        return self._rules[row.start]

    def propagation(self, row: ValueRow) -> tuple[PropagationStep, ...]:
        """Return the effects of propagation on the operands and results."""
        value = self._value(row.own, row.nest, b"sdy.propagation_edges")
        # There are as many of these texts as rows, so that they are not kept.
        return () if value is None else self._meaning(value, parse_propagation) or ()

    def origins(self, row: ValueRow) -> tuple[Origins, ...]:
        """For each result, where its axes come from."""
        for key in (b"sdy.sharding_origins", b"sdy.result_sharding_origins"):
            found = self._read(row.own, row.nest, key, parse_each_origins)
            if found is not None:
                return found
        return ()

    def has(self, row: ValueRow, word: bytes) -> bool:
        """Return whether a word is in its text."""
        return any(self._data.find(word, piece.start, piece.end) >= 0 for piece in row.own)

    def attributes(self, row: ValueRow) -> Mapping[str, str]:
        """All its attributes; none of one that cannot be read."""
        return self._attributes(row.own, row.nest)

    def _attributes(self, own: Sequence[Span], nest: Nest | None) -> Mapping[str, str]:
        operation = Operation(self.text, Span(own[0].start, own[-1].end), nest)
        return readable(lambda: operation.attributes) or {}

    def _read(self, own: Sequence[Span], nest: Nest | None, key: bytes, parse: Callable[[str], T]) -> T | None:
        value = self._value(own, nest, key)
        if value is None:
            return None
        parsed: dict[bytes, T | None] = self._parsed[key]
        if value not in parsed:
            parsed[value] = self._meaning(value, parse)
        return parsed[value]

    def _meaning(self, value: bytes, parse: Callable[[str], T]) -> T | None:
        try:
            return parse(self.text.resolved(_text(value)))
        except (ParseError, ValueError):
            return None

    def _value(self, own: Sequence[Span], nest: Nest | None, key: bytes) -> bytes | None:
        """The text of an attribute of the operation whose own text is in these pieces."""
        data = self._data
        for piece in own:
            start = data.find(key, piece.start, piece.end)
            # The names of some begin with those of others.
            while data.startswith(b"_", equals := start + len(key)) and start >= 0:
                start = data.find(key, equals, piece.end)
            if start < 0:
                continue
            value = _VALUE.match(data, equals + 3, piece.end) if data.startswith(b" = ", equals) else None
            # In a string there is an odd number of quotes in front of it.
            if value is None or data[start - 1] not in b"{ " or data.count(b'"', piece.start, start) % 2:
                whole = self._attributes(own, nest).get(key.decode())
                return None if whole is None else whole.encode()
            return value[1]
        return None


def _types(operation: Operation) -> tuple[MlirType, ...]:
    return readable(lambda: operation.result_types) or ()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
