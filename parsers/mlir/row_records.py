"""What is written at the operation of a row: its operands, and what Shardy says of it.

All is found by a search for its name in the operation's text. Where the text is not plain enough for that, the
operation is read as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from ..errors import ParseError, readable
from ..source import Span
from .operation import Operation
from .patterns import SDY_VALUE, STRING, USE
from .sdy import Origins, PropagationStep, ShardingRule
from .sdy_parser import parse_each_origins, parse_propagation, parse_sharding_rule
from .statement import read_head
from .text import MlirText
from .value_rows import ValueRow

T = TypeVar("T")

_USE = re.compile(USE.encode())
_INITIAL = b" init: "
_VALUE = re.compile(rf'({SDY_VALUE}|\[(?:[^\[\]"]++|{STRING})*+\])(?=[,}}])'.encode())
"""The value of an attribute: one of Shardy's, or a list."""


class RowRecords:
    """Reads what is at rows; equal texts are read once."""

    def __init__(self, text: MlirText) -> None:
        self.text = text
        self._parsed: dict[tuple[str, bytes], object] = {}
        self._rules: dict[int, ShardingRule | None] = {}

    def operation(self, row: ValueRow) -> Operation:
        """The operation of a row, as a whole."""
        return Operation(self.text, Span(row.start, row.own[-1].end), row.nest)

    def operands(self, row: ValueRow) -> tuple[str, ...]:
        """The names of its operands; none of one that cannot be read."""
        span = row.own[0]
        data = self.text.source.data
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

    def rule(self, row: ValueRow) -> ShardingRule | None:
        """How the dimensions of operands and results belong together; None where that is not said."""
        if row.start not in self._rules:
            self._rules[row.start] = self._read(row, "sdy.sharding_rule", parse_sharding_rule)
        return self._rules[row.start]

    def propagation(self, row: ValueRow) -> tuple[PropagationStep, ...]:
        """What propagation did between the operands and results."""
        value = self._value(row, "sdy.propagation_edges")
        try:
            # There are as many of these texts as rows.
            return () if value is None else parse_propagation(self.text.resolved(value.decode("utf-8", "replace")))
        except (ParseError, ValueError):
            return ()

    def origins(self, row: ValueRow) -> tuple[Origins, ...]:
        """For each result, where its axes come from."""
        for key in ("sdy.sharding_origins", "sdy.result_sharding_origins"):
            found = self._read(row, key, parse_each_origins)
            if found is not None:
                return found
        return ()

    def has(self, row: ValueRow, word: bytes) -> bool:
        """Whether a word is in its text."""
        return any(self.text.source.data.find(word, piece.start, piece.end) >= 0 for piece in row.own)

    def attributes(self, row: ValueRow) -> Mapping[str, str]:
        """All its attributes; none of one that cannot be read."""
        return readable(lambda: self.operation(row).attributes) or {}

    def _all_operands(self, row: ValueRow) -> tuple[str, ...]:
        return readable(lambda: self.operation(row).operands) or ()

    def _read(self, row: ValueRow, key: str, parse: Callable[[str], T]) -> T | None:
        value = self._value(row, key)
        if value is None:
            return None
        known = (key, value)
        if known not in self._parsed:
            try:
                self._parsed[known] = parse(self.text.resolved(value.decode("utf-8", "replace")))
            except (ParseError, ValueError):
                self._parsed[known] = None
        return self._parsed[known]  # type: ignore[return-value]

    def _value(self, row: ValueRow, key: str) -> bytes | None:
        data, word = self.text.source.data, key.encode()
        for piece in row.own:
            start = data.find(word, piece.start, piece.end)
            if start < 0:
                continue
            equals = start + len(word)
            value = _VALUE.match(data, equals + 3, piece.end) if data[equals : equals + 3] == b" = " else None
            # In a string there is an odd number of quotes in front of it.
            if value is None or data[start - 1] not in b"{ " or data.count(b'"', piece.start, start) % 2:
                whole = self.attributes(row).get(key)
                return None if whole is None else whole.encode()
            return value[1]
        return None
