"""HLO text in any layout: hand-written, nested, damaged, cut off.

Brackets, strings and comments tell what belongs together, and where they contradict the lines, the lines win: a line
with the indentation of a computation's other instructions that starts like one is one, whatever is still open above it.
What can not be read is reported, and reading goes on behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import Problem
from ..source import Source, Span
from .fields import attributes
from .patterns import ANYWHERE, NAME

_ROW_LIKE = rf"(?:ROOT\s++)?%?{NAME} = (?=\(|[a-z]\w*+\[)"
# The printer's own remark does not go on behind its line, whatever has become of its end.
_COMMENT = r"(?:/\*(?:[index=\d]++(?=\*/|\n)|(?:[^*]++|\*(?!/))*+)(?:\*/)?+|//[^\n]*+)"
# A string may have line breaks in it, but where the next line starts like an instruction its end is lost.
_LINE = rf"\n(?!\s*+{_ROW_LIKE})"
_STRING = rf"""(?:"(?:[^"\\\n]++|\\.|{_LINE})*+"?+|'(?:[^'\\\n]++|\\.|{_LINE})*+'?+)"""
_SPACE = rf"(?:\s++|{_COMMENT})*+"
_ARRAY = rf"{NAME}\s*+\[[^\]\n]*+\](?:\s*+\{{(?=[\d:}}])(?:[^{{}}]++|\{{[^{{}}]*+\}})*+\}})?+"
_BUFFER = r"b\([^()]*+\)"
# A tuple type ends where the opcode begins, with no more than a short remark between them.
_TUPLE = r"\((?:[^)]*+\)(?!(?:\s++|/\*[^*\n]{0,99}+\*/)*+[a-z][\w\-]*+\s*+\())*+[^)]*+\)"
_SIGNATURE = rf"{ANYWHERE.parentheses}\s*+->\s*+(?:{ANYWHERE.parentheses}|{_BUFFER}|{_ARRAY})"

ROW = re.compile(
    rf"(?:ROOT\s++)?%?({NAME})\s*+={_SPACE}({_TUPLE}|{_BUFFER}|{_ARRAY}|){_SPACE}([A-Za-z][\w\-]*+)\s*+\(".encode(),
    re.DOTALL,
)
"""An instruction up to its operands: (name, type, opcode). People leave out types, and XLA infers them."""

_HEADER = re.compile(
    rf"(?:(?P<entry>ENTRY)\b{_SPACE})?+%?(?P<name>{NAME}){_SPACE}(?:{_SIGNATURE}\s*+)?+\{{".encode(), re.DOTALL
)
_LOST_HEADER = re.compile(rb"(?P<entry>(?!))?(?P<name>(?!))?")
_HEADER_LINE = re.compile(rf"(?:ENTRY\s++)?%?{NAME} (?:\([^\n]*+(?<=\{{)|\{{$)".encode(), re.MULTILINE)
_TRIVIA = re.compile(_SPACE.encode(), re.DOTALL)
_ROW_START = re.compile(_ROW_LIKE.encode())
_TOKEN = re.compile(
    rf"""(?P<comment>{_COMMENT})|(?P<line>\n[ \t]*+)|(?P<open>[{{(\[])|(?P<close>[}})\]])|(?P<comma>,)"""
    rf"""|(?P<name>(?:ROOT[ \t]++)?%?{NAME}[ \t]*+=(?!=))|(?P<other>{_STRING}|[^\s,{{}}()\[\]"'/]++|/)""".encode(),
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Section:
    """A computation: its header (an empty match if that is lost), and where its statements are.

    `body_end` is the offset of the closing brace, or of the end of the text that was cut off.
    """

    header: re.Match[bytes]
    body_end: int
    end: int
    statements: tuple[Span, ...]


def sections(source: Source, start: int, end: int, problems: list[Problem]) -> Iterator[Section]:
    """The computations in a part of a text; for what is in none of them there are `problems`."""
    data = source.data
    position = _skip(source, start, end, problems)
    while position < end:
        header = _HEADER.match(data, position, end)
        line = Span(position, _line_end(data, position, end))
        if header or _ROW_START.match(data, position, end):
            if header is None:
                message = "an instruction outside of any computation"
                problems.append(Problem(message, source, line, ("a computation",)))
            section = _section(source, header or _lost_header(data, position), end, problems)
            yield section
            position = section.end
        else:
            _add_junk(source, line, problems)
            position = line.end
        position = _skip(source, position, end, problems)


def statements(source: Source, start: int, end: int) -> tuple[Span, ...]:
    """Where the statements are in the body of a computation whose ends are known."""
    return _section(source, _lost_header(source.data, start), end, []).statements


class _Body:
    """The statements of a body so far, and the one that is being read: from `first` to the last token, `last`.

    `column` is the indentation of the header, `margin` that of the first statement. A statement has its call when the
    parenthesis behind an opcode is closed again: then nothing but attributes can follow.
    """

    def __init__(self, data: bytes, header: re.Match[bytes], end: int) -> None:
        self.data = data
        self.end = end
        self.column = _indentation(data, header.start())
        self.margin: int | None = None
        self.last = header.end()
        self.statements: list[Span] = []
        self.first: int | None = None
        self.depth = 0
        self.previous: str | None = None
        self.in_call = self.has_call = False

    def take(self, token: re.Match[bytes]) -> None:
        """A token of a statement."""
        kind = token.lastgroup
        if kind == "name" and self.depth == 0 and self.previous != "comma":
            self.end_statement()
        if self.first is None:
            self.first = token.start()
            self.margin = _indentation(self.data, self.first) if self.margin is None else self.margin
        if kind == "open":
            opens_call = token[0] == b"(" and self.data[token.start() - 1 : token.start()].isalnum()
            self.in_call |= self.depth == 0 and opens_call
            self.depth += 1
        elif kind == "close":
            self.depth = max(0, self.depth - 1)
            self.has_call |= self.in_call and self.depth == 0
        self.last = token.end()
        self.previous = kind

    def break_line(self, start: int, indentation: int) -> None:
        """A line that starts there: whether a statement ends before it, for all that it has left open."""
        goes_on = self.depth > 0 or self.previous in ("comma", "name") or self.data.startswith(b",", start)
        starts_row = indentation == self.margin and _ROW_START.match(self.data, start, self.end)
        closes = indentation == self.column and self.data.startswith(b"}", start)
        if starts_row or closes or (self.has_call and not goes_on):
            self.end_statement()

    def is_closed_by(self, token: re.Match[bytes]) -> bool:
        """Whether a token is the brace at the end of the body, and not one too many in a statement."""
        if token[0] != b"}" or self.depth:
            return False
        follows = _TRIVIA.match(self.data, token.end(), self.end)
        after = follows.end() if follows else token.end()
        ends = after == self.end or self.data.startswith(b",", after) or _HEADER.match(self.data, after, self.end)
        return self.first is None or bool(ends)

    def end_statement(self) -> None:
        if self.first is not None:
            self.statements.append(Span(self.first, self.last))
        self.first, self.depth, self.previous = None, 0, None
        self.in_call = self.has_call = False


def _section(source: Source, header: re.Match[bytes], end: int, problems: list[Problem]) -> Section:
    body = _Body(source.data, header, end)
    for token in _TOKEN.finditer(source.data, header.end(), end):
        if token.lastgroup == "comment":
            _check_comment(source, token.start(), token.end(), problems)
        elif token.lastgroup == "line":
            indentation = token.end() - token.start() - 1
            if indentation == body.column and _HEADER_LINE.match(source.data, token.end(), end):
                break
            body.break_line(token.end(), indentation)
        elif body.is_closed_by(token):
            body.end_statement()
            stop = attributes(source.data, token.end(), end)[1]
            return Section(header, token.start(), stop, tuple(body.statements))
        else:
            body.take(token)
    body.end_statement()
    if header["name"]:
        problems.append(Problem("the computation is not closed", source, Span(*header.span()), ("'}'",)))
    return Section(header, body.last, body.last, tuple(body.statements))


def _skip(source: Source, start: int, end: int, problems: list[Problem]) -> int:
    trivia = _TRIVIA.match(source.data, start, end)
    stop = trivia.end() if trivia else start
    _check_comment(source, max(source.data.rfind(b"/*", start, stop), start), stop, problems)
    return stop


def _check_comment(source: Source, start: int, end: int, problems: list[Problem]) -> None:
    if source.data.startswith(b"/*", start, end) and source.data.find(b"*/", start + 2, end) < 0:
        problems.append(Problem("the remark has no end", source, Span(start, start + 2), ("'*/'",)))


def _add_junk(source: Source, line: Span, problems: list[Problem]) -> None:
    """Report a line, together with the line before if that is junk too."""
    if problems and problems[-1].message == _JUNK and not source.data[problems[-1].span.end : line.start].strip():
        line = Span(problems.pop().span.start, line.end)
    problems.append(Problem(_JUNK, source, line, ("a computation",)))


def _lost_header(data: bytes, position: int) -> re.Match[bytes]:
    empty = _LOST_HEADER.match(data, position)
    assert empty is not None
    return empty


def _line_end(data: bytes, start: int, end: int) -> int:
    line = data.find(b"\n", start, end)
    return end if line < 0 else line


def _indentation(data: bytes, position: int) -> int | None:
    """How many blanks there are before a position in its line; None if there is something else."""
    start = position
    while start and data[start - 1] in b" \t":
        start -= 1
    return position - start if not start or data[start - 1] == 10 else None


_JUNK = "this is no part of an HLO module"
