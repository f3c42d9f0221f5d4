"""HLO text in any layout, read by its grammar, `hlo.lark`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from ..errors import ParseError, Problem
from ..expressions import compiled
from ..grammar import Grammar
from ..lalr import Token
from ..source import Source, Span
from .call import LITERAL, Call, Operand
from .fields import as_printed, number, without_remarks
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
    return header and _header(data, *header), [section for sections in computations for section in sections]


def read_instruction(text: bytes) -> Reading:
    """A whole instruction; raises ParseError."""
    found: _Statement = _parsed(text, 0, len(text), "instruction")
    inside = Span(found.call.start + 1, found.call.end - 1)
    operands = () if found.opcode.encode() in LITERAL else tuple(_operands(found.call.parts[1:-1]))
    written = without_remarks(text[inside.start : inside.end].decode("utf-8", "replace")).strip()
    call = Call(written, operands, _texts(text, found.attributes), True)
    type_text = _text(text, Span(*found.type)).encode()
    return Reading(
        (text, found.name.removeprefix("%").encode(), type_text, found.opcode.encode()), call, any(found.bodies)
    )


def problem_in(text: bytes) -> Problem | None:
    """Return the problem of a text that should be an instruction, with its position in that text."""
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
    return _texts(text, _parsed(text, 0, len(text), "attributes"))


def read_tables(text: bytes) -> Mapping[str, Mapping[int, str]]:
    """The rows of the tables behind a module's header, as text by table and number; raises ParseError."""
    return {
        title.text: {
            found: _text(text, Span(row.start, row.end)) for key, row in rows if (found := number(key)) is not None
        }
        for title, rows in _parsed(text, 0, len(text), "tables")
    }


def _parsed(data: bytes, start: int, end: int, rule: str) -> Any:
    # One character for each byte: so all places are those of bytes.
    return _HLO.parse(data[start:end].decode("latin-1"), rule, start)


def _header(data: bytes, word: Token, name: Token | None, attributes: Sequence[Any], tables: Sequence[Any]) -> Header:
    end = (attributes[-1][1] if attributes else name or word).end
    place = Span(end, end)
    if tables:
        title, rows = tables[-1]
        place = Span(tables[0][0].start, (rows[-1][1] if rows else title).end)
    found = _texts(data, attributes)
    return Header(Span(word.start, place.end), name.text.removeprefix("%") if name else "", found, place)


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
"""Words that the grammar distinguishes only because they may also be names."""
_ELEMENT = compiled(r"(?:#[0-9]{1,9})+")


def _texts(data: bytes, attributes: Sequence[tuple[str, _Piece]]) -> dict[str, str]:
    return {key: _text(data, Span(value.start, value.end)) for key, value in attributes}


def _text(data: bytes, place: Span) -> str:
    """A piece of text, as XLA's printer writes it."""
    return as_printed(data[place.start : place.end].decode("utf-8", "replace").strip())


class _Piece(NamedTuple):
    """Something in a text that has parts: as a Token is of none."""

    kind: str
    start: int
    end: int
    parts: Sequence[Any] = ()


class _Body(NamedTuple):
    """A computation as one is that is written in an instruction, braces included, and those that are written in it."""

    start: int
    end: int
    section: Section
    nested: Sequence[_Body]


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


def _body(opening: Token, *rest: Any) -> _Body:
    *statements, closing = rest
    nested = [body for statement in statements for body in statement.bodies]
    section = Section(
        name="",
        is_entry=False,
        span=Span(opening.start, closing.end),
        body=Span(opening.end, closing.start),
        statements=tuple(Span(each.start, each.end) for each in statements),
        nested=tuple(body.section.span for body in nested),
        is_nested=True,
        is_valid=True,
    )
    return _Body(opening.start, closing.end, section, nested)


def _computation(
    entry: Token | None, name: Token, _signature: None, body: _Body, attributes: Sequence[tuple[str, _Piece]]
) -> list[Section]:
    place = Span((entry or name).start, attributes[-1][1].end if attributes else body.end)
    plain = name.text.removeprefix("%")
    found = [replace(body.section, name=plain, is_entry=entry is not None, span=place, is_nested=False)]
    waiting = [*body.nested]
    while waiting:
        inner = waiting.pop()
        waiting += inner.nested
        found.append(inner.section)
    return sorted(found, key=attrgetter("span"))


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
        "body": _body,
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
