"""The rows of a text that is as printers write it: each operation starts a line, and most tell their types there.

One pattern passes over all lines. The types of an operation with regions are behind the last of them. What cannot be
found this way, as it is spelled otherwise than by printers, is read as an operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from ..readable import readable
from .operation import Operation, operation_from
from .patterns import HEAD, NAMED, OF_TYPES, TYPES, WORD
from .statement import FUNCTION, read_head
from .structure import Nest
from .text import MlirText, nests_in

Kind = tuple[str, str]
"""An operation's name and its types."""

_NEXT_REGION = b"}, {\n"
BLOCK = 1 << 15
"""Bytes of text whose rows are taken at once: many enough to keep the loop cheap, few enough for the cache."""

_HEAD = (
    rf"\n *+(?:(%[{WORD}\-:]*+) = (?!%)|(?:\t[ \t]*+)?+(?=[%\"]|{NAMED}))"
    rf'([A-Za-z_][{WORD}]*+|"[{WORD}\-]++"(?=\()|{HEAD})'
)
"""Results and name; in place of the name all that an operation starts with, where a printer does not write it so."""
_LINE = re.compile(rf"{_HEAD}(?:(?>[^\n]* : )([^\n]++)|)", re.ASCII)
"""Results, name, and all that is behind the last colon, which without locations are types."""
_LOCATED_LINE = re.compile(rf"{_HEAD}(?:(?>[^\n]* : )({OF_TYPES}++(?=loc\()|[^\n]++)|)", re.ASCII)
"""The same, for types that mostly end in front of a location."""
_TYPES = re.compile(rf"{TYPES}(?=\Z|loc\()")
_FORM = re.compile(r"(?!.*//)(?:\(.*\) -> .*|[^( ].*)(?<!,)(?<!->)", re.DOTALL)
"""Types that do not go on in the next line behind a comma, an arrow or operand types, nor end in front of a comment."""
_WITHOUT_TYPES = frozenset({FUNCTION, "module", "builtin.module", "sdy.mesh"})
"""Operations whose pretty forms have no types."""
_UNTOLD: Kind = ("", "")
"""In place of a kind that a line does not tell."""


def rows_of_lines(text: MlirText) -> Iterator[tuple[list[str], list[Kind]]]:
    """The results and the kinds of all operations in text order, some hundred at a time."""
    data = text.source.data
    kinds_of = _KindsOf()
    others = _Others(text, kinds_of)
    line = _LOCATED_LINE if data.find(b" loc(", 0, BLOCK) >= 0 else _LINE
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + BLOCK)
        end = len(data) if end < 0 else end
        # Characters of this encoding are bytes, so that places in the block are offsets.
        lines = f"\n{data[start:end].decode('latin-1')}\n"
        found = line.findall(lines)
        results = [results for results, _, _ in found]
        kinds = [kinds_of[name][types] for _, name, types in found]
        if kinds_of.untold:
            numbers = [number for number, kind in enumerate(kinds) if kind is _UNTOLD]
            for number, match in zip(numbers, _chosen(line.finditer(lines), numbers), strict=True):
                results[number], kinds[number] = others.row(start - 1 + match.start(1 if match[1] else 2))
            kinds_of.untold = 0
        yield results, kinds
        start = end + 1


def _chosen(matches: Iterator[re.Match[str]], numbers: list[int]) -> Iterator[re.Match[str]]:
    """The matches that have these numbers, counted from 0."""
    passed = -1
    for number in numbers:
        yield next(islice(matches, number - passed - 1, None))
        passed = number


class _Kinds(dict[str, Kind]):
    """The kinds of operations of one name, by what a line has behind the colon."""

    def __init__(self, name: str, of: _KindsOf) -> None:
        super().__init__()
        self.name = name
        self.of = of

    def __missing__(self, found: str) -> Kind:
        types = _TYPES.match(found) if self.name not in _WITHOUT_TYPES else None
        written = types[0].strip() if types else ""
        is_told = self.name in _WITHOUT_TYPES or _are_complete(written)
        if not is_told or self.name.startswith("%"):
            self.of.untold += 1
            return _UNTOLD
        kind = self.of.once((self.name.strip('"'), written.encode("latin-1").decode("utf-8", "replace")))
        # What has a location behind it is another text on each line.
        if found.strip() == written:
            self[found] = kind
        return kind


def _are_complete(types: str) -> bool:
    """Whether a line has all of an operation's types."""
    angles = types.count("<") == types.count(">") - types.count("->")
    return angles and types.count("(") == types.count(")") and _FORM.fullmatch(types) is not None


class _KindsOf(dict[str, _Kinds]):
    """The kinds of operations by name; `untold` counts the rows that a line does not tell."""

    def __init__(self) -> None:
        super().__init__()
        self.untold = 0
        self._kinds: dict[Kind, Kind] = {}

    def __missing__(self, name: str) -> _Kinds:
        kinds = _Kinds(name, self)
        if not name.startswith("%"):
            self[name] = kinds
        return kinds

    def once(self, kind: Kind) -> Kind:
        """The one object for equal kinds."""
        return self._kinds.setdefault(kind, kind)


class _Others:
    """Rows that a line does not tell: of operations with regions, and of those that are spelled in another way.

    They are read one by one as long as that takes less than to find all regions.
    """

    def __init__(self, text: MlirText, kinds_of: _KindsOf) -> None:
        self._text = text
        self._kinds_of = kinds_of
        self._bytes_left = len(text.source.data)

    def row(self, start: int) -> tuple[str, Kind]:
        """The row of the operation that starts at an offset."""
        head = read_head(self._text.source, start)
        behind = self._behind_regions(start)
        kind = _UNTOLD if behind is None else self._kinds_of[f'"{head.name}"'][behind]
        if kind is _UNTOLD:
            operation = self._operation(start)
            kind = self._kinds_of.once(kind_of(operation) if operation else (head.name, ""))
        return head.results, kind

    def _behind_regions(self, start: int) -> str | None:
        """What is behind the last colon of an operation with regions, if it is indented as printers do it."""
        data = self._text.source.data
        line, first = data.rfind(b"\n", 0, start), data.find(b"\n", start)
        if min(line, first, self._bytes_left) < 0 or data[first - 1 : first] != b"{":
            return None
        margin = data[line:start]
        close = data.find(margin + b"}", first)
        while close >= 0 and data.startswith(_NEXT_REGION, close + len(margin)):
            close = data.find(margin + b"}", close + 1)
        self._bytes_left -= (close if close >= 0 else len(data)) - start
        inside = data[first:close]
        lines = sum(inside.count(margin + each) for each in (b" ", b"^", _NEXT_REGION))
        if close < 0 or lines != inside.count(b"\n") or inside.count(b"{") != inside.count(b"}"):
            return None
        end = data.find(b"\n", close + 1)
        last = data[close : end if end >= 0 else len(data)]
        return last.rpartition(b" : ")[2].decode("latin-1")

    def _operation(self, start: int) -> Operation | None:
        if self._bytes_left < 0:
            nest = self._nests.get(start)
            return Operation(self._text, nest.span, nest) if nest else operation_from(self._text, start)
        operation = operation_from(self._text, start)
        if operation:
            self._bytes_left -= operation.span.end - start
        return operation

    @cached_property
    def _nests(self) -> dict[int, Nest]:
        return {nest.span.start: nest for nest in nests_in(self._text)}


def kind_of(operation: Operation) -> Kind:
    """The name of an operation, and its types as they are written behind the colon; none if it cannot be read."""
    if operation.name == FUNCTION and not operation.head.is_quoted:
        return operation.name, ""
    return operation.name, readable(lambda: operation.statement.signature) or ""
