"""The grammars of this folder, `*.lark` files, with what their rules mean."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

from .errors import ParseError, Problem, problem_in
from .expressions import compiled
from .lalr import END, Actions, Machine, Parse, UnexpectedTerminalError, load_tables
from .source import Source, Span

if TYPE_CHECKING:
    from lark import Lark

STARTS: Mapping[str, tuple[str, ...]] = {
    "gspmd": ("start",),
    "hlo": ("module", "tables", "instruction", "attributes"),
    "hlo_layout": ("layout",),
    "hlo_types": ("type",),
    "jax_arrays": ("spec", "type"),
    "mlir_locations": ("start",),
    "mlir_types": ("start",),
    "replica_groups": ("groups", "pairs", "mesh"),
    "sdy": (
        *("mesh", "sharding", "shardings", "axis_list", "axis_lists", "exchanges", "sharding_rule"),
        *("origin", "propagation_edges"),
    ),
    "stablehlo": ("operation", "parameter", "function"),
    "stablehlo_attributes": ("groups", "dense", "channel"),
    "structure": ("start",),
}
"""The rules that a text of each grammar can be, by its name; `make grammars` makes the tables of these."""


_ESCAPE = compiled(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


class Grammar:
    """One grammar, by its name, and what its rules mean.

    The actions run while the text is parsed (LALR), so no tree is built, and nesting in the text costs no recursion.
    A rule's action takes the values of its parts. A terminal's action takes its text, or with `placed` a Token, which
    knows its place. A rule without an action has to be inlined by the grammar. An action raises ValueError for a text
    that is well formed and means nothing.
    """

    def __init__(self, name: str, actions: Actions, *, placed: bool = False) -> None:
        self._name = name
        self._actions = actions
        self._placed = placed

    def parse(self, text: str, start: str | None = None, offset: int = 0) -> Any:
        """The meaning of a text as the rule `start`; raises ParseError with positions relative to the text.

        Tokens are placed as in a longer text, in which this one is at an offset.
        """
        try:
            return Parse(self._machine, start).text(text, self._placed, offset)
        except UnexpectedTerminalError as error:
            problem = self._problem(text, error)
        except ValueError as error:
            problem = problem_in(text, str(error))
        raise ParseError(problem) from None

    def reader(self, start: str | None = None) -> Callable[[str], Any]:
        """Return a function that reads texts as the rule `start`, equal texts only once; it raises ParseError."""
        return lru_cache(maxsize=16384)(partial(self.parse, start=start))

    def fed_by_hand(self) -> Parse:
        """A parse of its first rule whose terminals the caller finds."""
        return Parse(self._machine)

    @cached_property
    def _machine(self) -> Machine:
        return Machine(load_tables(self._name), self._actions)

    def _problem(self, text: str, error: UnexpectedTerminalError) -> Problem:
        found = repr(_shown(text[error.start : error.end][:40])) if error.start < len(text) else "end of the text"
        spelled = self._machine.tables.spelled
        expected = sorted(_words(name, spelled.get(name)) for name in error.expected)
        return problem_in(text, f"unexpected {found}", error.start, error.end, tuple(expected))


def _shown(text: str) -> str:
    """The text with a replacement character for each half of a pair that stands alone."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def lark_of(name: str, **options: Any) -> Lark:
    """Lark's own parser of a grammar in this folder, `lark_of("hlo_types")`; `options` are those of `lark.Lark`."""
    import lark

    path = os.path.join(os.path.dirname(__file__), f"{name}.lark")
    with open(path, encoding="utf-8") as lines:
        return lark.Lark(lines, parser="lalr", start=list(STARTS[name]), source_path=path, **options)


def anchored(error: ParseError, source: Source, offset: int) -> ParseError:
    """The same error, of a piece that starts at `offset` of a source, with its place in that source."""
    span = Span(error.problem.span.start + offset, error.problem.span.end + offset)
    return ParseError(replace(error.problem, source=source, span=span))


def integers(text: str) -> tuple[int, ...]:
    """The action of a terminal that is a whole list: `1, 2,3`."""
    return tuple(map(int, text.split(",")))


def several(*items: Any) -> tuple[Any, ...]:
    """The action of a rule that is an optional list; an empty one has None as its only part."""
    return () if items == (None,) else items


def unquote(text: str) -> str:
    r"""The string that a quoted text stands for, in single or double quotes, with C escapes as XLA prints them.

    Source: absl::CEscape: `\n`, `\"`, octal `\303`, hex `\xc3`.
    """
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    return _ESCAPE.sub(_character, inner.encode("utf-8", "replace")).decode("utf-8", "replace")


def _character(match: re.Match[bytes]) -> bytes:
    octal, short, four, eight, letter = match.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if short is not None:
        return bytes([int(short, 16)])
    if four is not None or eight is not None:
        code = int(four or eight, 16)
        return chr(code).encode("utf-8", "replace") if code <= 0x10FFFF else b"?"
    return _LETTERS.get(letter, letter)


def _words(name: str, spelled: str | None) -> str:
    if name == END:
        return "the end of the text"
    return repr(spelled) if spelled is not None else name.lower().replace("_", " ").strip()
