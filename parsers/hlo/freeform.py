"""HLO text in any layout: hand-written, with computations in instructions, damaged, cut off.

Brackets, strings and comments tell what belongs together. A line with the indentation of a computation's other
instructions that starts like one is one all the same, whatever is still open above it; and in a text whose brackets do
not match, lines tell by their indentation where a computation ends. What can not be read is reported, and reading goes
on behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import Problem
from ..source import Source, Span
from .freeform_body import check_remark, read_computation
from .freeform_patterns import HEADER, LOST_HEADER, ROW_START, TRIVIA
from .section import Section

_JUNK = "this is no part of an HLO module"


def sections(source: Source, start: int, end: int, problems: list[Problem]) -> Iterator[Section]:
    """The computations in a part of a text, in the order of their headers.

    What is in none of them, and what is not closed, is added to the problems.
    """
    data = source.data
    by_lines = False
    position = _skip(source, start, end, problems)
    while position < end:
        header = HEADER.match(data, position, end)
        line = Span(position, _line_end(data, position, end))
        if header or ROW_START.match(data, position, end):
            if header is None:
                message = "an instruction outside of any computation"
                problems.append(Problem(message, source, line, ("a computation",)))
                header = _lost_header(data, position)
            reading = read_computation(source, header, end, by_lines)
            if reading.is_torn and not by_lines:
                # From here on, so that nothing is read more than twice.
                by_lines = True
                reading = read_computation(source, header, end, by_lines)
            problems += reading.problems
            yield from reading.sections
            position = reading.sections[0].end
        else:
            _add_junk(source, line, problems)
            position = line.end
        position = _skip(source, position, end, problems)


def statements(source: Source, start: int, end: int) -> tuple[Span, ...]:
    """Where the statements are in the body of a computation whose ends are known."""
    reading = read_computation(source, _lost_header(source.data, start), end, by_lines=True)
    return reading.sections[0].statements or ()


def _skip(source: Source, start: int, end: int, problems: list[Problem]) -> int:
    trivia = TRIVIA.match(source.data, start, end)
    stop = trivia.end() if trivia else start
    check_remark(source, max(source.data.rfind(b"/*", start, stop), start), stop, problems)
    return stop


def _add_junk(source: Source, line: Span, problems: list[Problem]) -> None:
    """Report a line, together with the line before if that is junk too."""
    if problems and problems[-1].message == _JUNK and not source.data[problems[-1].span.end : line.start].strip():
        line = Span(problems.pop().span.start, line.end)
    problems.append(Problem(_JUNK, source, line, ("a computation",)))


def _lost_header(data: bytes, position: int) -> re.Match[bytes]:
    empty = LOST_HEADER.match(data, position)
    assert empty is not None
    return empty


def _line_end(data: bytes, start: int, end: int) -> int:
    line = data.find(b"\n", start, end)
    return end if line < 0 else line
