"""Spans of operations and functions, found without reading them.

A name is searched for, and what is around it looked at. Printed text is indented: a function ends at the next brace
that stands as far to the right as the function does, and to find it is a search for a few bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..expressions import compiled
from ..record import Record
from ..source import Span
from .patterns import OPERATIONS, REGION, REST, RESULTS, TRIVIA, for_bytes
from .structure import Nest

_WINDOW = 256
MAX_COMMENT_BYTES = 4096
"""Bytes of a line in front of an operation that are searched for the start of a comment."""

_BEFORE = compiled(rf'(?:(?:\A|\n|(\{{|(?:\)|\^[\w$.\-]++)\s*+:))[ \t]*+)((?:{RESULTS}\s*+=\s*+)?+"?+)\Z'.encode())
_NAMES = rb"[%\w$.\-]*+(?::\d*+)?+"
_ONLY_RESULTS = compiled(rb'[\s,]*+%s(?:\s*+,\s*+%s)*+\s*+(?:=\s*+"?+)?+\Z' % (_NAMES, _NAMES))
_BEHIND = compiled(rb'(?:"|(?![\w$."]))')


def spans_in(data: bytes, run: Span) -> Iterator[Span]:
    """Return the spans of the operations in a run of them."""
    for match in for_bytes(OPERATIONS).finditer(data, run.start, run.end):
        if match[1]:
            yield Span(*match.span(1))


def span_at(data: bytes, start: int, end: int | None = None) -> Span | None:
    """Return the span of the operation without regions that starts at an offset, or after white space there."""
    match = for_bytes(OPERATIONS).match(data, start, len(data) if end is None else end)
    return Span(*match.span(1)) if match and match[1] else None


def starts(data: bytes, names: Collection[str]) -> list[int]:
    """The offsets at which operations of these names start, in text order."""
    return sorted(start for name in set(names) for start in _starts(data, name.encode()))


def _starts(data: bytes, name: bytes) -> Iterator[int]:
    for offset in occurrences(data, name, 0, len(data)):
        if _BEHIND.match(data, offset + len(name)):
            start = _start(data, offset)
            if start is not None:
                yield start


def occurrences(data: bytes, searched: bytes, start: int, end: int) -> Iterator[int]:
    """Yield the positions of a text, last one first: a search backwards takes a half to two thirds of the time."""
    place = data.rfind(searched, start, end)
    while place >= 0:
        yield place
        place = data.rfind(searched, start, place + len(searched) - 1)


def _start(data: bytes, name: int) -> int | None:
    """Return the start of the operation whose name is at an offset; None if there is no operation's name."""
    size = _WINDOW
    while True:
        first = max(name - size, 0)
        window = data[first:name]
        before = _BEFORE.search(window)
        # A long list of results starts before the window, or there may be blank lines behind it.
        if before is None or (first and not before[1] and not window[: before.start()].strip()):
            if first == 0 or not _ONLY_RESULTS.match(window):
                return None
            size *= 8
        elif before[1] and b"//" in data[max(first - MAX_COMMENT_BYTES, 0) : name].rpartition(b"\n")[2]:
            return None
        else:
            return first + before.start(2)


_REGION = compiled(REGION.encode())
_AFTER_FUNCTION = compiled(rb"[ \t]*+(?:\)|loc\b|//|\n|\Z)")
_INDENT = compiled(rb"\s*?\n([ \t]*+)(?=\S)")
_INSIDE_A_FUNCTION = compiled(rf"{TRIVIA}(?:[%^]|(?:func\.)?return\b)".encode())


class FoundFunction(Record, frozen=True):
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


class _Start(Record, frozen=True):
    """A function's first character, and how its line is indented."""

    offset: int
    indent: bytes
    line: int


def find_functions(data: bytes) -> tuple[FoundFunction, ...] | None:
    """The functions in text order; None if the text is not indented as a printer does it.

    A function without end goes up to the next one or to the end of the text.
    """
    starts = _function_starts(data)
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


def _function_starts(data: bytes) -> list[_Start] | None:
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
