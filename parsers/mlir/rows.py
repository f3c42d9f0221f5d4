"""Every operation of a text as a row, without a Python object for each of them.

In printed text each line that starts an operation also holds its types, unless it has regions, and one pattern passes
over all lines. Operations with regions are read one by one, and so is all text that is not as a printer writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from ..errors import ParseError
from .operation import Operation, operation_from, operations_in
from .statement import FUNCTION
from .structure import Nest
from .text import MlirText, nests_in

BLOCK = 1 << 18
"""Bytes of text whose rows are taken at once: many enough to keep the loop cheap, few enough for the cache."""

# Lines of loops and reductions that start with these words go on with the operation above.
_LINE = re.compile(
    r"\n[ \t]*+(?!cond\b|reducer\b)(?:(%[^\s=]*+(?: %[^\s=]*+)*+)\s*+=\s*+)?+"
    r'("[\w$.\-]++(?="\s*+\()|(?(1)[A-Za-z_][\w$.]*+'
    r"|(?:[A-Za-z_][\w$]*+\.[\w$.]++|(?:return|call_indirect|call|module)\b)(?! *+=)))"
    r'(?:[^\n]* : ([^\n"{}=l]++(?:l(?!oc\()[^\n"{}=l]*+)*+)(?=\n|loc\()|)',
    re.ASCII,
)
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


class _Kinds(dict[tuple[str, str], tuple[str, str]]):
    """Names and types as they are found, and as they are meant; `incomplete` are those that a line does not tell."""

    def __init__(self) -> None:
        super().__init__()
        self.incomplete: set[tuple[str, str]] = set()

    def __missing__(self, found: tuple[str, str]) -> tuple[str, str]:
        name, types = found[0], found[1].rstrip().encode("latin-1").decode("utf-8", "replace")
        if not _COMPLETE.fullmatch(types) and (types or name not in _WITHOUT_TYPES):
            self.incomplete.add(found)
        return self.setdefault(found, (name.strip('"'), types))


def _of_lines(text: MlirText) -> Rows:
    data = text.source.data
    rows = Rows([], [])
    kinds = _Kinds()
    nests = _Nests(text)
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + BLOCK)
        end = len(data) if end < 0 else end
        # Characters of this encoding are bytes, so that places in the block are offsets.
        lines = f"\n{data[start:end].decode('latin-1')}\n"
        found = _LINE.findall(lines)
        pairs = list(map(itemgetter(1, 2), found))
        rows.results.extend(map(itemgetter(0), found))
        rows.kinds.extend(map(kinds.__getitem__, pairs))
        if not kinds.incomplete.isdisjoint(pairs):
            for index, line in enumerate(_LINE.finditer(lines), len(rows) - len(found)):
                if line.groups("")[1:] in kinds.incomplete:
                    operation = nests.operation(start - 1 + (line.start(1) if line[1] else line.start(2)))
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
