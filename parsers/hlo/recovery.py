"""HLO text that is broken: damaged, cut off, or with something in it that is none.

Brackets, strings and remarks tell what belongs together. A line with the indentation of a computation's other
instructions that starts like one is one all the same, whatever is still open above it; and lines tell by their
indentation where a computation ends. What can not be read is reported, and reading goes on behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter

from ..errors import Problem
from ..source import Source, Span
from .broken_patterns import CALLING_KEY, HEADER, HEADER_LINE, LOST_HEADER, NESTED_HEADER, ROW_START, TOKEN, TRIVIA
from .fields import attributes
from .sections import Section

_JUNK = "this is no part of an HLO module"


def sections(source: Source, start: int, end: int, problems: list[Problem]) -> Iterator[Section]:
    """The computations in a part of a text, in the order of their headers.

    What is in none of them, and what is not closed, is added to the problems.
    """
    data = source.data
    position = _skip(source, start, end, problems)
    while position < end:
        header = HEADER.match(data, position, end)
        line = Span(position, _line_end(data, position, end))
        if header or ROW_START.match(data, position, end):
            if header is None:
                message = "an instruction outside of any computation"
                problems.append(Problem(message, source, line, ("a computation",)))
                header = _lost_header(data, position)
            found = _read_computation(source, header, end, problems)
            yield from found
            position = found[0].span.end
        else:
            _add_junk(source, line, problems)
            position = line.end
        position = _skip(source, position, end, problems)


def statements(source: Source, start: int, end: int, problems: list[Problem]) -> tuple[Span, ...]:
    """Yield the spans of the statements in the body of a computation with known ends."""
    found: tuple[Span, ...] = ()
    while start < end:
        body = _read_computation(source, _lost_header(source.data, start), end, problems)[0]
        found += body.statements
        start = body.body.end + 1
        if source.data.startswith(b"}", body.body.end) and body.body.end < end:
            problems.append(Problem("a brace that closes nothing", source, Span(body.body.end, start)))
        else:
            break
    return found


def header_before(data: bytes, start: int, end: int) -> int:
    """Return the start of the last line that can only be a header; `start` if there is none."""
    while start < (line := data.rfind(b"\n", start, end)):
        if HEADER_LINE.match(data, line + 1):
            return line + 1
        end = line
    return start


def _read_computation(source: Source, header: re.Match[bytes], end: int, problems: list[Problem]) -> list[Section]:
    """A computation and all that are nested in it, in the order of their headers.

    It is read from behind its header up to its own end or that of the text, `end`. A nested computation ends before a
    line that is indented as the one around it; and a body, before a brace that is indented as its header.
    """
    data = source.data
    column = margin = _indentation_of(data, header.start())
    body = outermost = _Body(data, header, end, column, None)
    found: list[Section] = []
    for token in TOKEN.finditer(data, header.end(), end):
        if token.lastgroup == "comment":
            _check_remark(source, token.start(), token.end(), problems)
        elif token.lastgroup == "line":
            column = token.end() - token.start() - 1
            if column == margin and HEADER_LINE.match(data, token.end(), end):
                break
            while body.outer and body.is_left_by(token.end(), column):
                problems.append(_not_closed(source, body.header))
                found.append(body.section(body.last, body.last))
                body = body.outer
            body.break_line(token.end(), column)
        elif opening := body.nested_at(token):
            body = _Body(data, opening, end, column, body)
        elif not body.is_closed_by(token):
            body.take(token)
        elif body.outer:
            found.append(body.section(token.start(), token.end()))
            body = body.outer
        else:
            found.append(body.section(token.start(), attributes(data, token.end(), end)[1]))
            return sorted(found, key=attrgetter("span"))
    if header["name"]:
        problems.append(_not_closed(source, header))
    while body.outer:
        found.append(body.section(body.last, body.last))
        body = body.outer
    found.append(outermost.section(outermost.last, outermost.last))
    return sorted(found, key=attrgetter("span"))


def _skip(source: Source, start: int, end: int, problems: list[Problem]) -> int:
    trivia = TRIVIA.match(source.data, start, end)
    stop = trivia.end() if trivia else start
    _check_remark(source, max(source.data.rfind(b"/*", start, stop), start), stop, problems)
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


def _check_remark(source: Source, start: int, end: int, problems: list[Problem]) -> None:
    if source.data.startswith(b"/*", start, end) and source.data.find(b"*/", start + 2, end) < 0:
        problems.append(Problem("the remark has no end", source, Span(start, end), ("'*/'",)))


def _indentation_of(data: bytes, position: int) -> int | None:
    """Return the number of blanks before a position in its line; None if there is anything else."""
    start = position
    while start and data[start - 1] in b" \t":
        start -= 1
    return position - start if not start or data[start - 1] == 10 else None


def _not_closed(source: Source, header: re.Match[bytes]) -> Problem:
    return Problem("the computation is not closed", source, Span(*header.span()), ("'}'",))


class _Body:
    """The statements of a body so far, and the one that is being read: from `first` to the last token, `last`.

    `column` is the indentation of the line that the header ends in, `margin` that of the first statement. A statement
    has its call when the parenthesis behind an opcode is closed again: then nothing but attributes can follow.
    """

    def __init__(self, data: bytes, header: re.Match[bytes], end: int, column: int | None, outer: _Body | None) -> None:
        self.data = data
        self.header = header
        self.end = end
        self.column = column
        self.outer = outer
        self.margin: int | None = None
        self.last = header.end()
        self.statements: list[Span] = []
        self.nested: list[Span] = []
        self.first: int | None = None
        self.depth = 0
        self.previous: str | None = None
        self.in_call = self.has_call = self.names_computations = False

    def take(self, token: re.Match[bytes]) -> None:
        """A token of a statement."""
        kind = token.lastgroup
        if kind == "name" and self.depth == 0:
            if self.previous != "comma":
                self.end_statement()
            self.names_computations = CALLING_KEY.fullmatch(token[0]) is not None
        if self.first is None:
            self.first = token.start()
            self.margin = _indentation_of(self.data, self.first) if self.margin is None else self.margin
        if kind == "open":
            opens_call = token[0] == b"(" and self.data[token.start() - 1 : token.start()].isalnum()
            self.in_call |= self.depth == 0 and opens_call
            self.depth += 1
        elif kind == "close":
            self.depth = max(0, self.depth - 1)
            self.has_call |= self.in_call and self.depth == 0
        self.last = token.end()
        self.previous = kind

    def nested_at(self, token: re.Match[bytes]) -> re.Match[bytes] | None:
        """The header of a computation that is written here, in the value of an attribute."""
        if token[0] != b"{" or not self.names_computations:
            return None
        return NESTED_HEADER.match(self.data, token.start(), self.end)

    def take_nested(self, place: Span) -> None:
        """A computation that is written in the statement."""
        self.nested.append(place)
        self.last = place.end
        self.previous = "close"

    def break_line(self, start: int, indentation: int) -> None:
        """A line that starts there: whether a statement ends before it, for all that it has left open."""
        goes_on = self.depth > 0 or self.previous in ("comma", "name") or self.data.startswith(b",", start)
        starts_row = indentation == self.margin and ROW_START.match(self.data, start, self.end)
        closes = indentation == self.column and self.data.startswith(b"}", start)
        if starts_row or closes or (self.has_call and not goes_on):
            self.end_statement()

    def is_left_by(self, start: int, indentation: int) -> bool:
        """Return whether an instruction of the enclosing computation starts there, without an end of this one."""
        outside = self.outer.margin if self.outer else None
        if outside is None or self.margin is None or not indentation <= outside < self.margin:
            return False
        return ROW_START.match(self.data, start, self.end) is not None

    def is_closed_by(self, token: re.Match[bytes]) -> bool:
        """Return whether a token is the brace at the end of the body, and not a surplus one in a statement."""
        if token[0] != b"}" or self.depth:
            return False
        follows = TRIVIA.match(self.data, token.end(), self.end)
        after = follows.end() if follows else token.end()
        if self.outer:
            goes_on = ROW_START.match(self.data, after, self.end) and _indentation_of(self.data, after) == self.margin
            return not goes_on or self.margin == self.outer.margin
        ends = after == self.end or self.data.startswith(b",", after) or HEADER.match(self.data, after, self.end)
        return self.first is None or bool(ends)

    def end_statement(self) -> None:
        if self.first is not None:
            self.statements.append(Span(self.first, self.last))
        self.first, self.depth, self.previous = None, 0, None
        self.in_call = self.has_call = self.names_computations = False

    def section(self, body_end: int, end: int) -> Section:
        """All of it, as it ends there."""
        self.end_statement()
        name, is_entry = self.header["name"] or b"", self.header["entry"] is not None
        start = self.header.start("entry" if is_entry else "name" if name else 0)
        start -= self.data[start - 1 : start] == b"%"
        place, body = Span(start, end), Span(self.header.end(), body_end)
        if self.outer:
            self.outer.take_nested(place)
        statements, nested = tuple(self.statements), tuple(self.nested)
        return Section(name.decode(), is_entry, place, body, statements, nested, is_nested=self.outer is not None)
