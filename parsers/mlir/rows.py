"""Every operation of a text as a row, without a Python object for each of them.

In printed text each line that starts an operation also holds its types, unless it has regions, and one pattern passes
over all lines. Operations with regions are read one by one, and so is all text that is not as a printer writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ..errors import ParseError
from ..garbage import collection_paused
from .operation import Operation, operation_from, operations_in
from .patterns import NAMED
from .statement import FUNCTION
from .structure import Nest
from .text import MlirText, nests_in

BLOCK = 1 << 15
"""Bytes of text whose rows are taken at once: many enough to keep the loop cheap, few enough for the cache."""

_HEAD = (
    r"\n[ \t]*+(?:(%[\w$.\-:,]*+(?: %[\w$.\-:,]*+)*+)\s*+=\s*+)?+"
    rf'("[\w$.\-]++(?="\s*+\()|(?(1)[A-Za-z_][\w$.]*+|{NAMED}))'
)
_TYPES = r'[^\n"{}=l]++(?:l(?!oc\()[^\n"{}=l]*+)*+(?=\n|\Z|loc\()'
_LINE = re.compile(rf"{_HEAD}(?:[^\n]* : ([^\n]++)|)", re.ASCII)
"""Results and name, and all that is behind the last colon, which without locations are types."""
_LOCATED_LINE = re.compile(rf"{_HEAD}(?:[^\n]* : ({_TYPES})|)", re.ASCII)
"""Results, name, and the types in front of a location: a third slower."""
_ONLY_TYPES = re.compile(_TYPES)
# Types may go on in the next line behind a comma, an arrow or operand types, or end in front of a comment.
_COMPLETE = re.compile(r"(?!.*//)(?:\(.*\) -> .*|[^( ].*)(?<!,)(?<!->)", re.DOTALL)
_WITHOUT_TYPES = frozenset({FUNCTION, "module", "return", "sdy.mesh"})
"""Operations whose pretty forms may have no types."""
_BEHIND_BRACE = re.compile(rb"\{ ")


@dataclass(frozen=True, slots=True)
class Rows:
    """The results of operations as they are written, `%0, %1:2`, and side by side with them their names and types.

    Types are all that is written behind the colon. Iterating gives (results, name, types). Equal pairs of name and
    types are one object, so that a million rows stay small.
    """

    results: list[str]
    kinds: list[tuple[str, str]]

    def __len__(self) -> int:
        return len(self.kinds)

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        return ((results, *kind) for results, kind in zip(self.results, self.kinds, strict=True))


def read_rows(text: MlirText) -> Rows:
    """The rows of all operations in text order, except those of regions that are not written out."""
    is_printed = text.functions is not None and _starts_lines_only(text.source.data)
    with collection_paused():
        return _of_lines(text) if is_printed else _of_operations(text)


def _starts_lines_only(data: bytes) -> bool:
    """Whether no operation starts behind a brace or a block's label, on the same line."""
    label = data.find(b"^")
    while label >= 0:
        end = data.find(b"\n", label)
        if data[label:end].rstrip()[-1:] != b":":
            return False
        label = data.find(b"^", end)
    return not _BEHIND_BRACE.search(data)


class _Kinds(dict[str, tuple[str, str]]):
    """The kinds of operations of one name by what is found behind the colon, if a line tells them."""

    def __init__(self, name: str, names: _Names) -> None:
        super().__init__()
        self.name = name
        self.names = names

    def __missing__(self, found: str) -> tuple[str, str]:
        types = _ONLY_TYPES.match(found)
        written = types[0].rstrip().encode("latin-1").decode("utf-8", "replace") if types else ""
        kind = self.name.strip('"'), written
        if _COMPLETE.fullmatch(written) or (not written and self.name in _WITHOUT_TYPES):
            self[found] = kind
        else:
            self.names.incomplete += 1
        return kind


class _Names(dict[str, _Kinds]):
    """Names of operations and their kinds; `incomplete` counts the rows that a line does not tell."""

    def __init__(self) -> None:
        super().__init__()
        self.incomplete = 0

    def __missing__(self, name: str) -> _Kinds:
        self[name] = _Kinds(name, self)
        return self[name]


def _of_lines(text: MlirText) -> Rows:
    data = text.source.data
    rows = Rows([], [])
    names = _Names()
    nests = _Nests(text)
    line = _LOCATED_LINE if data.find(b" loc(", 0, BLOCK) >= 0 else _LINE
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + BLOCK)
        end = len(data) if end < 0 else end
        # Characters of this encoding are bytes, so that places in the block are offsets.
        lines = f"\n{data[start:end].decode('latin-1')}\n"
        found = line.findall(lines)
        incomplete = names.incomplete
        rows.results.extend([results for results, _, _ in found])
        rows.kinds.extend([names[name][types] for _, name, types in found])
        if names.incomplete > incomplete:
            for index, match in enumerate(line.finditer(lines), len(rows) - len(found)):
                if (match[3] or "") not in names[match[2]]:
                    operation = nests.operation(start - 1 + (match.start(1) if match[1] else match.start(2)))
                    rows.kinds[index] = rows.kinds[index][0], _types(operation) if operation else ""
        start = end + 1
    return rows


class _Nests:
    """The operations with regions, found one by one as long as that takes less than to find them all."""

    def __init__(self, text: MlirText) -> None:
        self._text = text
        self._bytes_left = len(text.source.data)

    def operation(self, start: int) -> Operation | None:
        """The operation that starts at an offset."""
        if self._bytes_left < 0:
            nest = self._all.get(start)
            return Operation(self._text, nest.span, nest) if nest else operation_from(self._text, start)
        operation = operation_from(self._text, start)
        if operation:
            self._bytes_left -= operation.span.end - start
        return operation

    @cached_property
    def _all(self) -> dict[int, Nest]:
        return {nest.span.start: nest for nest in nests_in(self._text)}


def _of_operations(text: MlirText) -> Rows:
    rows = Rows([], [])
    for block in text.outline[0].blocks:
        for outer in operations_in(text, block):
            for operation in outer.walk():
                if operation.text is text:
                    rows.results.append(operation.head.results)
                    rows.kinds.append((operation.name, _types(operation)))
    return rows


def _types(operation: Operation) -> str:
    """The types behind the colon; empty if the operation cannot be read."""
    try:
        return "" if operation.name == FUNCTION and not operation.head.is_quoted else operation.statement.signature
    except ParseError:
        return ""
