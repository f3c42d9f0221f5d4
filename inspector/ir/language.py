"""The operations of a stage language: read a text, list its content, highlight a line.

Each language is a module of `languages/`. Analyses that only one language has take its own syntax: `ParsedStage.hlo`,
`mlir` and `jaxpr`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ...parsers.errors import Problem
from ...parsers.record import Record
from ...parsers.source import Frame, Source, Span

Token = tuple[int, int, str]
"""First character, the one after the last, and the kind: one of `KINDS`."""

KINDS = ("aside", "string", "value", "type", "collective", "operation", "keyword", "groups")


class Operation(NamedTuple):
    """An operation where it is shown, with its call stack, innermost first."""

    span: Span
    stack: tuple[Frame, ...]


class Embedded(NamedTuple):
    """A module inside of another, such as the body of a kernel: its name, its language and its text."""

    name: str
    language: str
    source: Source


class Module(Protocol):
    """A text that was read. Its parts are read on first use."""

    @property
    def source(self) -> Source:
        """The text as it is shown."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The parts that could not be read."""

    @property
    def devices(self) -> int:
        """Number of devices that the text declares; 1 where it declares none."""

    @property
    def embedded(self) -> Sequence[Embedded]:
        """The modules inside of it."""

    def opcode_counts(self) -> Mapping[str, int]:
        """Return the number of operations of each name."""

    def operation_at(self, offset: int) -> Operation | None:
        """The innermost operation around an offset."""

    def located(self) -> Iterator[Operation]:
        """The operations that have a call stack."""


class DebugInfo(Record, frozen=True):
    """Information that a text has besides the program.

    `attribute` ends before the bracket, or the quote, of what is in a line; a table begins with a line that starts with
    `table_head`, and is what `table_rows` matches there.
    """

    attribute: re.Pattern[bytes]
    table_head: bytes
    table_rows: re.Pattern[bytes]


class Language(Record, frozen=True):
    """A language: its name, its parser, which raises ParseError, and the words in a line that stand out.

    `words` is a verbose regular expression, whose groups are named as the kinds of tokens.
    """

    name: str
    read: Callable[[Source], Module]
    words: str
    debug_info: DebugInfo | None = None

    def tokens(self, line: str) -> list[Token]:
        """Yield the highlighted tokens of a line."""
        found = re.compile(self.words, re.VERBOSE).finditer(line)
        return [(match.start(), match.end(), match.lastgroup or "") for match in found]


def any_of(words: Iterable[str]) -> str:
    """A regular expression for any of some words, longer ones first."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
