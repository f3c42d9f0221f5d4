"""One instruction of an HLO computation, each of its parts read from the text on first use.

Its name, type and opcode are the index's business (`printed.py`, `reading.py`); attributes are split by `fields.py`;
the value of an attribute has a grammar of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from sys import intern
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..errors import ParseError, readable
from ..expressions import compiled
from ..grammar import anchored
from ..sharding_syntax.replica_groups import Pairs, ReplicaGroups, parse_pairs, parse_replica_groups
from ..source import Frame, Source, Span
from . import printed
from .call import CALLING, LITERAL, Call, Operand, backend_config, parse_call
from .fields import Metadata, fields, number, parse_metadata, plain
from .patterns import NAME
from .reading import read_instruction
from .sections import Statement
from .types import HloType, element_type, parse_type

if TYPE_CHECKING:
    from ..sharding_syntax.gspmd import Sharding
    from .computation import Computation

T = TypeVar("T")
Row = tuple[bytes, bytes, bytes, bytes]
"""A match of `printed.ROW`: its text, name, type, opcode."""

_ROOT = compiled(rb"ROOT(?![A-Za-z0-9_.\-])")
_PLAIN_OPERANDS = compiled(rf"\((?:%({NAME}(?:, %{NAME})*+))?+\)".encode(), re.ASCII)
_ELEMENT = compiled(rf"\(%{NAME}\), index=(\d+)(?![^,\n])".encode(), re.ASCII)
_PLAIN_LITERAL = compiled(rb"\(([A-Za-z0-9.+-]*|\{[A-Za-z0-9.+{}, -]*+\})\)", re.ASCII)
_PLAIN_FUSION = compiled(rf"\((?:%{NAME}(?:, %{NAME})*+)?+\), kind=\w++, calls=%?({NAME})(?=,|\n)".encode(), re.ASCII)


class Instruction:
    """One instruction. Its parts are texts until they are used; equal texts are read once."""

    __slots__ = ("_call", "_end", "_row", "_start", "computation", "opcode")

    opcode: Final[str]
    """Operation in XLA's spelling; asynchronous halves are `all-gather-start` and the like."""

    def __init__(
        self, computation: Computation, row: re.Match[bytes] | Row, start: int, end: int, call: Call | None = None
    ) -> None:
        self.computation = computation
        self._row = row
        self._start = start
        self._end = end
        self._call = call
        # Walks compare it more often than anything else.
        self.opcode = intern(row[3].decode())

    def __repr__(self) -> str:
        return f"<{self.name} = {self.type_text} {self.opcode}(…)>"

    @property
    def span(self) -> Span:
        """All of it, from `ROOT` or its name to its last attribute."""
        return Span(self._start, self._end)

    @property
    def start(self) -> int:
        """The offset of its first byte."""
        return self._start

    @property
    def name(self) -> str:
        """Its name, without the percent sign."""
        return self._row[1].decode("utf-8", "replace")

    @property
    def type_text(self) -> str:
        """Its type as it is in the text."""
        return self._row[2].decode("utf-8", "replace")

    @property
    def type(self) -> HloType:
        """Its type."""
        return parse_type(self.type_text)

    @property
    def is_root(self) -> bool:
        """True if it is marked as the result of its computation."""
        return _ROOT.match(self._source.data, self._start, self._end) is not None

    @property
    def text(self) -> str:
        """All of it as it is in the text."""
        return self._source.text(self.span)

    @property
    def call(self) -> Call:
        """Its operands and attributes, not yet interpreted."""
        if self._call is None:
            assert isinstance(self._row, re.Match)
            start = self._row.end(3)
            self._call = parse_call(self._source.data, start, self._end, has_operands=self._has_operands)
            if not self._call.is_complete:
                text = self._source.data[self._start : self._end]
                read = readable(lambda: read_instruction(text))
                self._call = read.call if read else self._call
        return self._call

    @property
    def is_complete(self) -> bool:
        """True if it could be read to its end."""
        return self.call.is_complete

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the instructions that its operands come from, without percent signs."""
        plain = self.plain_operands
        return tuple(operand.name for operand in self.references) if plain is None else tuple(plain)

    @property
    def plain_operands(self) -> list[str] | None:
        """The same where they are names alone, as compilers print them, found without reading what is behind them."""
        if not self._has_operands:
            return []
        if self._call is not None:
            return None
        assert isinstance(self._row, re.Match)
        found = _PLAIN_OPERANDS.match(self._source.data, self._row.end(3), self._end)
        if found is None:
            return None
        return found[1].decode().split(", %") if found[1] else []

    @property
    def element(self) -> int | None:
        """The tuple element that a get-tuple-element takes."""
        if self._call is None and isinstance(self._row, re.Match):
            found = _ELEMENT.match(self._source.data, self._row.end(3), self._end)
            if found is not None:
                return number(found[1].decode())
        return number(self.attributes.get("index"))

    @property
    def references(self) -> tuple[Operand, ...]:
        """Its operands, including those that are one element of an instruction's result."""
        plain = self.plain_operands
        if plain is not None:
            return tuple(map(Operand, plain))
        return self.call.operands

    @property
    def operand_types(self) -> tuple[HloType | None, ...]:
        """The types of its operands; None of those that are not in its computation."""
        made = ((self.computation.instruction(each.name), each.index) for each in self.references)
        return tuple(None if one is None else element_type(one.type, index) for one, index in made)

    @property
    def literal(self) -> str | None:
        """The text in the parentheses of a constant or parameter."""
        if self._has_operands:
            return None
        if self._call is None and isinstance(self._row, re.Match):
            found = _PLAIN_LITERAL.match(self._source.data, self._row.end(3), self._end)
            if found is not None:
                return found[1].decode()
        return self.call.inside.strip()

    @property
    def attributes(self) -> Mapping[str, str]:
        """Its attributes as text, by key; of a computation that is written in one, the name."""
        return self.call.attributes

    @property
    def metadata(self) -> Metadata | None:
        """Origin of the instruction."""
        text = self.attributes.get("metadata")
        return None if text is None else parse_metadata(text)

    @property
    def op_name(self) -> str | None:
        """The path of transformations and primitives that it was lowered from; None if the text does not say."""
        metadata = self.metadata
        return (metadata.op_name or None) if metadata is not None else None

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The user's call stack it comes from, innermost first; empty if the text does not say."""
        metadata = self.metadata
        if metadata is None:
            return ()
        if metadata.frame is not None:
            return (metadata.frame,)
        return self.computation.module.frames(metadata.stack_frame_id or 0)

    @property
    def frontend_attributes(self) -> Mapping[str, str]:
        """Attributes of the front end, by key; strings without their quotes, other values as text."""
        return {key: plain(value) for key, value in fields(self.attributes.get("frontend_attributes", "{}")).items()}

    @property
    def backend_config(self) -> Any:
        """Attributes of the backend: JSON values, or text that is no JSON; None if there are none."""
        text = self.attributes.get("backend_config")
        return None if text is None else backend_config(text)

    @property
    def replica_groups(self) -> ReplicaGroups | None:
        """Among which devices it communicates; raises ParseError."""
        return self._value("replica_groups", parse_replica_groups)

    @property
    def source_target_pairs(self) -> Pairs | None:
        """Senders and receivers; raises ParseError."""
        return self._value("source_target_pairs", parse_pairs)

    @property
    def sharding(self) -> Sharding | None:
        """Sharding of its result; raises ParseError."""
        # Few ask for it of the many that list collectives.
        from ..sharding_syntax.gspmd import parse_sharding

        return self._value("sharding", parse_sharding)

    @property
    def call_target(self) -> str:
        """The target of a custom call; empty for other instructions."""
        return self.attributes.get("custom_call_target", "").strip('"')

    @property
    def callees(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the computations it calls, by attribute."""
        if self.opcode == "fusion" and self._call is None and isinstance(self._row, re.Match):
            found = _PLAIN_FUSION.match(self._source.data, self._row.end(3), self._end)
            if found is not None:
                return {"calls": (found[1].decode(),)}
        call = self.call
        return {key: call.computations(key) for key in CALLING if key in call.attributes}

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the computations it calls."""
        return tuple(name for names in self.callees.values() for name in names)

    @property
    def _has_operands(self) -> bool:
        return self._row[3] not in LITERAL

    @property
    def _source(self) -> Source:
        return self.computation.module.source

    def _value(self, key: str, parse: Callable[[str], T]) -> T | None:
        text = self.attributes.get(key)
        if text is None:
            return None
        try:
            return parse(text)
        except ParseError as error:
            offset = self._source.data.find(f"{key}={text}".encode(), self._start, self._end)
            raise anchored(error, self._source, max(offset + len(key) + 1, self._start)) from None


def instruction_of(computation: Computation, statement: Statement) -> Instruction | None:
    """The instruction in a statement; of a broken one what can be read, None if that is nothing."""
    text, place = statement.text, statement.place
    row = printed.exact().fullmatch(text)
    if row is None:
        if read := readable(lambda: read_instruction(text)):
            return Instruction(computation, read.head, place.start, place.end, read.call)
        # Few texts need it, and it has large patterns to compile.
        from .broken_patterns import ROW

        row = ROW.match(text)
    if row is None:
        return None
    call = parse_call(text, row.end(3), len(text), has_operands=row[3] not in LITERAL)
    return Instruction(computation, row, place.start, place.end, call)
