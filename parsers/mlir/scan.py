"""Where operations are: those without regions that follow each other, and those of given names.

A name is searched for, and what is around it looked at.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ..source import Span
from .patterns import OPERATIONS, RESULTS, for_bytes

_WINDOW = 256
LONGEST_COMMENT = 4096
"""Bytes of a line in front of an operation that are searched for the start of a comment."""

_BEFORE = re.compile(rf'(?:(?:\A|\n|(\{{|(?:\)|\^[\w$.\-]++)\s*+:))[ \t]*+)((?:{RESULTS}\s*+=\s*+)?+"?+)\Z'.encode())
_NAMES = rb"[%\w$.\-]*+(?::\d*+)?+"
_ONLY_RESULTS = re.compile(rb'[\s,]*+%s(?:\s*+,\s*+%s)*+\s*+(?:=\s*+"?+)?+\Z' % (_NAMES, _NAMES))
_BEHIND = re.compile(rb'(?:"|(?![\w$."]))')


def spans_in(data: bytes, run: Span) -> Iterator[Span]:
    """Where the operations in a run of them are."""
    for match in for_bytes(OPERATIONS).finditer(data, run.start, run.end):
        if match[1]:
            yield Span(*match.span(1))


def span_at(data: bytes, start: int, end: int | None = None) -> Span | None:
    """Where the operation without regions is that starts at an offset, or behind white space there."""
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
    """Where a text is found, last place first: a search backwards takes a half to two thirds of the time."""
    place = data.rfind(searched, start, end)
    while place >= 0:
        yield place
        place = data.rfind(searched, start, place + len(searched) - 1)


def _start(data: bytes, name: int) -> int | None:
    """Where the operation starts whose name is at an offset; None if nothing there is an operation's name."""
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
        elif before[1] and b"//" in data[max(first - LONGEST_COMMENT, 0) : name].rpartition(b"\n")[2]:
            return None
        else:
            return first + before.start(2)
