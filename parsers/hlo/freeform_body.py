"""Reading the body of one computation, in any layout, with all that are nested in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import attrgetter

from ..errors import Problem
from ..source import Source, Span
from .fields import attributes
from .freeform_patterns import CALLING_KEY, HEADER, HEADER_LINE, NESTED_HEADER, ROW_START, TOKEN, TOKEN_BY_LINES, TRIVIA
from .section import Section


@dataclass(frozen=True, slots=True)
class Reading:
    """A computation and all that are nested in it, in the order of their headers; and what is wrong with them.

    It is torn if its brackets do not match.
    """

    sections: list[Section]
    problems: list[Problem]
    is_torn: bool


def read_computation(source: Source, header: re.Match[bytes], end: int, by_lines: bool) -> Reading:
    """Read from behind a header to the end of that computation, or of the text, `end`.

    With `by_lines` a nested computation ends before a line that is indented as the one around it; and a body, before a
    brace that is indented as its header. That is for torn text.
    """
    data = source.data
    column = margin = indentation_of(data, header.start())
    body = outermost = _Body(data, header, end, column, None)
    found: list[Section] = []
    problems: list[Problem] = []
    for token in (TOKEN_BY_LINES if by_lines else TOKEN).finditer(data, header.end(), end):
        if token.lastgroup == "comment":
            check_remark(source, token.start(), token.end(), problems)
        elif token.lastgroup == "line":
            column = token.end() - token.start() - 1
            if column == margin and HEADER_LINE.match(data, token.end(), end):
                break
            while by_lines and body.outer and body.is_left_by(token.end(), column):
                problems.append(_not_closed(source, body.header))
                found.append(body.section(body.last, body.last))
                body = body.outer
            body.break_line(token.end(), column, by_lines)
        elif opening := body.nested_at(token):
            body = _Body(data, opening, end, column, body)
        elif not body.is_closed_by(token):
            body.take(token)
        elif body.outer:
            found.append(body.section(token.start(), token.end()))
            body = body.outer
        else:
            found.append(body.section(token.start(), attributes(data, token.end(), end)[1]))
            return Reading(sorted(found, key=attrgetter("start")), problems, body.is_torn)
    if header["name"]:
        problems.append(_not_closed(source, header))
    while body.outer:
        found.append(body.section(body.last, body.last))
        body = body.outer
    found.append(outermost.section(outermost.last, outermost.last))
    return Reading(sorted(found, key=attrgetter("start")), problems, is_torn=True)


def check_remark(source: Source, start: int, end: int, problems: list[Problem]) -> None:
    """Report a remark that is not closed."""
    if source.data.startswith(b"/*", start, end) and source.data.find(b"*/", start + 2, end) < 0:
        problems.append(Problem("the remark has no end", source, Span(start, start + 2), ("'*/'",)))


def indentation_of(data: bytes, position: int) -> int | None:
    """How many blanks there are before a position in its line; None if there is something else."""
    start = position
    while start and data[start - 1] in b" \t":
        start -= 1
    return position - start if not start or data[start - 1] == 10 else None


def _not_closed(source: Source, header: re.Match[bytes]) -> Problem:
    return Problem("the computation is not closed", source, Span(*header.span()), ("'}'",))


class _Body:
    """The statements of a body so far, and the one that is being read: from `first` to the last token, `last`.

    `column` is the indentation of the line that the header ends in, `margin` that of the first statement. A statement
    has its call when the parenthesis behind an opcode is closed again: then nothing but attributes can follow. A body
    is torn if a statement ended within brackets, or if there were more closing ones than it had open.
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
        self.is_torn = False

    def take(self, token: re.Match[bytes]) -> None:
        """A token of a statement."""
        kind = token.lastgroup
        if kind == "name" and self.depth == 0:
            if self.previous != "comma":
                self.end_statement()
            self.names_computations = CALLING_KEY.fullmatch(token[0]) is not None
        if self.first is None:
            self.first = token.start()
            self.margin = indentation_of(self.data, self.first) if self.margin is None else self.margin
        if kind == "open":
            opens_call = token[0] == b"(" and self.data[token.start() - 1 : token.start()].isalnum()
            self.in_call |= self.depth == 0 and opens_call
            self.depth += 1
        elif kind == "close":
            self.is_torn |= self.depth == 0
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

    def break_line(self, start: int, indentation: int, by_lines: bool) -> None:
        """A line that starts there: whether a statement ends before it, for all that it has left open."""
        goes_on = self.depth > 0 or self.previous in ("comma", "name") or self.data.startswith(b",", start)
        starts_row = indentation == self.margin and ROW_START.match(self.data, start, self.end)
        closes = by_lines and indentation == self.column and self.data.startswith(b"}", start)
        if starts_row or closes or (self.has_call and not goes_on):
            self.is_torn |= self.depth > 0
            self.end_statement()

    def is_left_by(self, start: int, indentation: int) -> bool:
        """Whether an instruction of the computation outside starts there, though the end of this one is not found."""
        outside = self.outer.margin if self.outer else None
        if outside is None or self.margin is None or not indentation <= outside < self.margin:
            return False
        return ROW_START.match(self.data, start, self.end) is not None

    def is_closed_by(self, token: re.Match[bytes]) -> bool:
        """Whether a token is the brace at the end of the body, and not one too many in a statement."""
        if token[0] != b"}" or self.depth:
            return False
        follows = TRIVIA.match(self.data, token.end(), self.end)
        after = follows.end() if follows else token.end()
        if self.outer:
            goes_on = ROW_START.match(self.data, after, self.end) and indentation_of(self.data, after) == self.margin
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
        if self.outer:
            self.outer.take_nested(Span(self.header.start(), end))
            self.outer.is_torn |= self.is_torn
        return Section(self.header, body_end, end, tuple(self.statements), tuple(self.nested), self.outer is not None)
