"""HLO text in any layout, read by its grammar, `hlo.lark`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import ParseError, Problem
from ..grammar import Grammar
from ..lalr import Token
from ..source import Source, Span
from .call import LITERAL, Call, Operand
from .fields import without_remarks
from .sections import Section


class Header(NamedTuple):
    """The header of a module: its place, its name, its attributes as text, and where the tables behind it are."""

    place: Span
    name: str
    attributes: Mapping[str, str]
    tables: Span


class Reading(NamedTuple):
    """An instruction: all of its text, its name, type and opcode, as in a match of `printed.ROW`; and the rest."""

    head: tuple[bytes, bytes, bytes, bytes]
    call: Call
    has_bodies: bool


def read_module(data: bytes, start: int, end: int) -> tuple[Header | None, list[Section]]:
    """The header of a module, if there is one, and its computations, by their places; raises ParseError."""
    header, computations = _parsed(data, start, end, "module")
    sections = [section for computation in computations for section in _sections(computation, start)]
    return header and _header(data, start, *header), sections


def read_instruction(text: bytes) -> Reading:
    """A whole instruction; raises ParseError."""
    found: _Statement = _parsed(text, 0, len(text), "instruction")
    inside = Span(found.call.start + 1, found.call.end - 1)
    operands = () if found.opcode.encode() in LITERAL else tuple(_operands(found.call.parts[1:-1]))
    call = Call(_text(text, inside), operands, _texts(text, 0, found.attributes), True)
    type_text = _text(text, Span(*found.type)).encode()
    return Reading(
        (text, found.name.removeprefix("%").encode(), type_text, found.opcode.encode()), call, any(found.bodies)
    )


def problem_in(text: bytes) -> Problem | None:
    """What is wrong with a text that should be a whole instruction; its place is in that text."""
    try:
        # A byte that is no UTF-8 stays one byte, so that what is behind it keeps its place.
        _HLO.parse(text.decode("utf-8", "surrogateescape"), "instruction")
    except ParseError as error:
        expected = error.problem.expected
        if "word" in expected:
            expected = tuple(each for each in expected if each not in _WORDS)
        return replace(error.problem, expected=expected)
    return None


def read_attributes(text: bytes) -> Mapping[str, str]:
    """Attributes as text, by key; raises ParseError."""
    return _texts(text, 0, _parsed(text, 0, len(text), "attributes"))


def read_tables(text: bytes) -> Mapping[str, Mapping[int, str]]:
    """The rows of the tables behind a module's header, as text by table and number; raises ParseError."""
    return {
        title.text: {int(number): _text(text, Span(row.start, row.end)) for number, row in rows if number.isdecimal()}
        for title, rows in _parsed(text, 0, len(text), "tables")
    }


def _parsed(data: bytes, start: int, end: int, rule: str) -> Any:
    # One character for each byte: so all places are those of bytes.
    return _HLO.parse(data[start:end].decode("latin-1"), rule)


def _header(
    data: bytes, offset: int, word: Token, name: Token | None, attributes: Sequence[Any], tables: Sequence[Any]
) -> Header:
    end = (attributes[-1][1] if attributes else name or word).end + offset
    place = Span(end, end)
    if tables:
        title, rows = tables[-1]
        place = Span(tables[0][0].start + offset, (rows[-1][1] if rows else title).end + offset)
    found = _texts(data, offset, attributes)
    return Header(Span(word.start + offset, place.end), name.text.removeprefix("%") if name else "", found, place)


def _sections(computation: _Computation, offset: int) -> list[Section]:
    """A computation and all that are nested in it."""
    found = []
    bodies = [computation.body]
    while bodies:
        body = bodies.pop()
        nested = [each for statement in body.statements for each in statement.bodies]
        bodies += nested
        whole = computation if body is computation.body else _Computation("", False, body.start, body.end, body)
        found.append(
            Section(
                whole.name,
                whole.is_entry,
                Span(whole.start + offset, whole.end + offset),
                Span(body.start + 1 + offset, body.end - 1 + offset),
                tuple(Span(each.start + offset, each.end + offset) for each in body.statements),
                tuple(Span(each.start + offset, each.end + offset) for each in nested),
                is_nested=body is not computation.body,
                is_valid=True,
            )
        )
    return sorted(found, key=lambda section: section.span)


def _operands(pieces: Sequence[Any]) -> Iterator[Operand]:
    """The operands in parentheses: an argument ends with the name of one, or with the parentheses of an instruction."""
    last: list[Any] = []
    for piece in [*pieces, None]:
        if piece is not None and piece.kind != "COMMA":
            last.append(piece)
            continue
        *before, end = last or [None]
        element = end is not None and end.kind == "WORD" and _ELEMENT.fullmatch(end.text)
        name = before[-1] if before and (element or (end.kind == "group" and end.parts[0].text == "(")) else end
        if name is not None and name.kind in ("NAME", "PERCENT_NAME"):
            plain = name.text.removeprefix("%")
            if element:
                yield Operand(plain, tuple(map(int, end.text.split("#")[1:])))
            else:
                yield Operand(plain if name is end else f"{plain}.anon")
        last = []


_WORDS = ("'<='", "device ids", "name", "percent name", "transposed", "word end")
"""What the grammar tells from other words only because it may also stand somewhere else."""
_ELEMENT = re.compile(r"(?:#[0-9]{1,9})+")


def _texts(data: bytes, offset: int, attributes: Sequence[tuple[str, _Piece]]) -> dict[str, str]:
    return {key: _text(data, Span(value.start + offset, value.end + offset)) for key, value in attributes}


def _text(data: bytes, place: Span) -> str:
    """A piece of text with a blank for each remark."""
    return without_remarks(data[place.start : place.end].decode("utf-8", "replace")).strip()


class _Piece(NamedTuple):
    """Something in a text that has parts: as a Token is of none."""

    kind: str
    start: int
    end: int
    parts: Sequence[Any] = ()


class _Body(NamedTuple):
    """The statements of a computation, braces included."""

    start: int
    end: int
    statements: Sequence[_Statement]


class _Computation(NamedTuple):
    """A computation with a header, and all of it with the attributes behind it."""

    name: str
    is_entry: bool
    start: int
    end: int
    body: _Body


class _Statement(NamedTuple):
    """An instruction, and the bodies that are written in it."""

    name: str
    type: tuple[int, int]
    opcode: str
    call: _Piece
    attributes: Sequence[tuple[str, _Piece]]
    start: int
    end: int

    @property
    def bodies(self) -> Iterator[_Body]:
        """The computations that are written in its attributes."""
        return (body for _, value in self.attributes if value.kind == "callees" for body in value.parts)


def _piece(kind: str) -> Callable[..., _Piece]:
    return lambda *parts: _Piece(kind, parts[0].start, parts[-1].end, parts)


def _callees(*parts: Any) -> _Piece:
    bodies = (each.parts if isinstance(each, _Piece) else [each] for each in parts if not isinstance(each, Token))
    return _Piece("callees", parts[0].start, parts[-1].end, tuple(body for some in bodies for body in some))


def _instruction(
    root: Token | None,
    name: Token,
    equal: Token,
    _type: None,
    opcode: Token,
    call: _Piece,
    attributes: Sequence[tuple[str, _Piece]],
) -> _Statement:
    end = attributes[-1][1].end if attributes else call.end
    start = (root or name).start
    return _Statement(name.text, (equal.end, opcode.start), opcode.text, call, attributes, start, end)


def _computation(
    entry: Token | None, name: Token, _signature: None, body: _Body, attributes: Sequence[tuple[str, _Piece]]
) -> _Computation:
    end = attributes[-1][1].end if attributes else body.end
    return _Computation(name.text.removeprefix("%"), entry is not None, (entry or name).start, end, body)


_HLO = Grammar(
    "hlo",
    {
        "module": lambda header, *computations: (header, computations),
        "header": lambda word, name, attributes, tables: (word, name, attributes, tables),
        "tables": lambda *tables: tables,
        "table": lambda title, *rows: (title, rows),
        "row": lambda number, value: (number.text, value),
        "computation": _computation,
        "signature": lambda *_: None,
        "body": lambda opening, *rest: _Body(opening.start, rest[-1].end, rest[:-1]),
        "instruction": _instruction,
        "call": _piece("call"),
        "name": lambda name: name,
        "attributes": lambda *attributes: attributes,
        "attribute": lambda key, value: (key.text, value),
        "value": _piece("value"),
        "callees": _callees,
        "group": _piece("group"),
        "tuple": lambda *_: None,
        "buffer": lambda *_: None,
        "spaced_array": lambda *_: None,
    },
    placed=True,
)


def read_part(
    source: Source, start: int, end: int, problems: list[Problem], prologue_end: int | None = None
) -> tuple[Header | None, list[Section]]:
    """The header of the module, if it is in this part, and the computations, in the order of their headers.

    What is in none of them, and what is not closed, is added to the problems. With `prologue_end` the header of the
    module is at the start, and its computations are behind that if the header is broken.
    """
    try:
        return read_module(source.data, start, end)
    except ParseError as error:
        failed = min(start + error.problem.span.start, end)
    # Few texts need it, and it has large patterns to compile.
    from . import recovery

    start = start if prologue_end is None else prologue_end
    whole, found = recovery.header_before(source.data, start, failed), []
    if whole > start:
        try:
            found = read_module(source.data, start, whole)[1]
            start = whole
        except ParseError:
            pass
    return None, [*found, *recovery.sections(source, start, end, problems)]


def read_body(source: Source, header: int, body: Span, problems: list[Problem]) -> tuple[tuple[Span, ...], bool]:
    """The statements of a computation whose ends are known, and whether all of it is in the language."""
    try:
        (section,) = read_module(source.data, header, body.end + 1)[1]
        return section.statements, True
    except (ParseError, ValueError):
        from . import recovery

        return recovery.statements(source, body.start, body.end, problems), False
