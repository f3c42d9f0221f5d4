"""Where the functions of a text are, found without reading what is in them.

Printed text is indented: a function ends at the next brace that stands as far to the right as the function does, and to
find it is a search for a few bytes. Text that is not indented so has to be read bracket by bracket.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..source import Span
from .patterns import REGION, REST, TRIVIA, for_bytes
from .scan import occurrences, span_at
from .structure import Nest

_REGION = re.compile(REGION.encode())
_AFTER_FUNCTION = re.compile(rb"[ \t]*+(?:\)|loc\b|//|\n|\Z)")
_INDENT = re.compile(rb"\s*?\n([ \t]*+)(?=\S)")
_INSIDE_A_FUNCTION = re.compile(rf"{TRIVIA}(?:[%^]|(?:func\.)?return\b)".encode())


@dataclass(frozen=True, slots=True)
class FoundFunction:
    """A function and the text between its braces; one that is only declared has none."""

    span: Span
    body: Span | None

    @property
    def nest(self) -> Nest | None:
        """The function as a part of the tree, its body left for later."""
        if self.body is None:
            return None
        pieces = Span(self.span.start, self.body.start - 1), Span(min(self.body.end + 1, self.span.end), self.span.end)
        return Nest(pieces, (self.body,))


@dataclass(frozen=True, slots=True)
class _Start:
    """A function's first character, and how its line is indented."""

    offset: int
    indent: bytes
    line: int


def find_functions(data: bytes) -> tuple[FoundFunction, ...] | None:
    """The functions in text order; None if the text is not indented as a printer does it.

    A function without end goes up to the next one or to the end of the text.
    """
    starts = _starts(data)
    if starts is None:
        return None
    found: list[FoundFunction] = []
    for number, start in enumerate(starts):
        if found and start.offset < found[-1].span.end:
            continue
        following = number + 1
        while following < len(starts) and len(starts[following].indent) > len(start.indent):
            following += 1
        limit = starts[following].line if following < len(starts) else len(data)
        function = _function(data, start, limit)
        if function is None or _INSIDE_A_FUNCTION.match(data, function.span.end):
            return None
        found.append(function)
    return tuple(found)


def _starts(data: bytes) -> list[_Start] | None:
    starts = []
    for offset in occurrences(data, b"func.func", 0, len(data)):
        line = data.rfind(b"\n", 0, offset) + 1
        before = data[line:offset]
        indent = before.removesuffix(b'"')
        if not indent.strip():
            starts.append(_Start(line + len(indent), indent, line))
        elif b"//" not in indent:
            return None
    return starts[::-1]


def _function(data: bytes, start: _Start, limit: int) -> FoundFunction | None:
    line_end = data.find(b"\n", start.offset, limit)
    line_end = limit if line_end < 0 else line_end
    if not _REGION.match(data, line_end - 1):
        declared = span_at(data, start.offset, limit)
        return FoundFunction(declared, None) if declared else None
    closing = b"\n" + start.indent + b"}"
    end = min(occurrences(data, closing, line_end, limit), default=None)
    if end is None:
        end = _misplaced_end(data, line_end, limit)
        if end is None:
            return FoundFunction(Span(start.offset, limit), Span(line_end, limit))
        if not data.startswith(b"\n" + start.indent, end):
            return None
    brace = data.index(b"}", end)
    behind = for_bytes(REST).match(data, brace + 1, limit)
    assert behind is not None
    if not _AFTER_FUNCTION.match(data, behind.start(), limit):
        return None
    return FoundFunction(Span(start.offset, behind.end()), Span(line_end, brace))


def _misplaced_end(data: bytes, start: int, limit: int) -> int | None:
    """The line break before a brace that closes the function, being the last thing before the next one.

    People move a function without its end. A brace that stands further to the right than the body does not close it.
    """
    last = end = limit
    while end > start and not data[last:end].strip().partition(b"//")[0]:
        end = last
        last = data.rfind(b"\n", start, end)
    brace, inside = (_INDENT.match(data, place) for place in (max(last, start), start))
    if brace and inside and data.startswith(b"}", brace.end()) and len(brace[1]) <= len(inside[1]):
        return last
    return None
