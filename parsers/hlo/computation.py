"""The computations of an HLO module and their instructions, each read from the text when it is first asked for.

Where they are, and an instruction's name, type and opcode, is the index's business (`printed.py`, `freeform.py`);
attributes are split by `fields.py`; the value of an attribute has a grammar of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any, Protocol, TypeVar

from ..errors import ParseError
from ..grammar import anchored
from ..gspmd import Sharding, parse_sharding
from ..replica_groups import Pairs, ReplicaGroups, parse_pairs, parse_replica_groups
from ..source import Source, Span
from ..source_frames import Frame
from . import printed
from .call import CALLING, Call, Operand, backend_config, parse_call
from .fields import attributes, fields, number, plain
from .metadata import Metadata, parse_metadata
from .types import HloType, parse_type

T = TypeVar("T")


class Owner(Protocol):
    """What a computation needs of the module that it is in."""

    @property
    def source(self) -> Source:
        """The text that the module is in."""

    def frames(self, stack_frame_id: int) -> tuple[Frame, ...]:
        """The call stack of that number."""

    def computation(self, name: str) -> Computation | None:
        """The computation of that name."""


class Instruction:
    """One instruction. Its parts are texts until they are asked for; equal texts are read once."""

    __slots__ = ("_call", "_end", "_row", "_start", "computation")

    def __init__(self, computation: Computation, row: re.Match[bytes], start: int, end: int) -> None:
        self.computation = computation
        self._row = row
        self._start = start
        self._end = end
        self._call: Call | None = None

    def __repr__(self) -> str:
        return f"<{self.name} = {self.type_text} {self.opcode}(…)>"

    @property
    def span(self) -> Span:
        """All of it, from `ROOT` or its name to its last attribute."""
        return Span(self._start, self._end)

    @property
    def name(self) -> str:
        """Its name, without the percent sign."""
        return self._row[1].decode("utf-8", "replace")

    @property
    def type_text(self) -> str:
        """Its type as it is in the text."""
        return self._row[2].decode("utf-8", "replace")

    @property
    def opcode(self) -> str:
        """What it does, in XLA's spelling; asynchronous halves are `all-gather-start` and the like."""
        return self._row[3].decode()

    @property
    def type(self) -> HloType:
        """Its type."""
        return parse_type(self.type_text)

    @property
    def is_root(self) -> bool:
        """Whether it is marked as the result of its computation."""
        return self._row.start(1) - self._start > 1

    @property
    def text(self) -> str:
        """All of it as it is in the text."""
        return self._source.text(self.span)

    @property
    def call(self) -> Call:
        """Its operands and attributes, not yet interpreted."""
        if self._call is None:
            # The row ends behind the opening parenthesis.
            self._call = parse_call(self._source.data, self._row.end() - 1, self._end)
        return self._call

    @property
    def is_complete(self) -> bool:
        """Whether it could be read to its end."""
        return self.call.end == self._end

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the instructions that its operands come from, without percent signs."""
        return tuple(operand.name for operand in self.references)

    @property
    def references(self) -> tuple[Operand, ...]:
        """Its operands, including those that are one element of an instruction's result."""
        return () if self.literal is not None else self.call.operands

    @property
    def literal(self) -> str | None:
        """The text in the parentheses of a constant or parameter."""
        return self.call.inside if self.opcode in ("constant", "parameter") else None

    @property
    def attributes(self) -> Mapping[str, str]:
        """Its attributes as text, by key."""
        return self.call.attributes

    @property
    def metadata(self) -> Metadata | None:
        """Where it comes from."""
        text = self.attributes.get("metadata")
        return None if text is None else parse_metadata(text)

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
        """What the front end attached, by key; strings without their quotes, other values as text."""
        return {key: plain(value) for key, value in fields(self.attributes.get("frontend_attributes", "{}")).items()}

    @property
    def backend_config(self) -> Any:
        """What the backend attached: JSON values, or text where it is no JSON; None where there is none."""
        text = self.attributes.get("backend_config")
        return None if text is None else backend_config(text)

    @property
    def replica_groups(self) -> ReplicaGroups | None:
        """Among which devices it communicates; raises ParseError."""
        return self._value("replica_groups", parse_replica_groups)

    @property
    def source_target_pairs(self) -> Pairs | None:
        """Who sends to whom; raises ParseError."""
        return self._value("source_target_pairs", parse_pairs)

    @property
    def sharding(self) -> Sharding | None:
        """How its result is sharded; raises ParseError."""
        return self._value("sharding", parse_sharding)

    @property
    def callees(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the computations it calls, by attribute."""
        call = self.call
        return {key: call.computations(key) for key in CALLING if key in call.attributes}

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the computations it calls."""
        return tuple(name for names in self.callees.values() for name in names)

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
            offset = self._source.data.find(f"{key}={text}".encode(), self._row.end(), self._end)
            raise anchored(error, self._source, max(offset + len(key) + 1, self._start)) from None


class Computation:
    """One computation. Its instructions are found when one of them is first asked for."""

    __slots__ = ("_by_name", "_found", "_header", "_statements", "body_end", "module")

    def __init__(
        self, module: Owner, header: re.Match[bytes], body_end: int, statements: tuple[Span, ...] | None = None
    ) -> None:
        """`statements` are the places of its instructions in text that is not as printed."""
        self.module = module
        self.body_end = body_end
        """The offset of its closing brace, or of the end of the text if that is cut off."""
        self._header = header
        self._statements = statements
        self._found: tuple[Instruction, ...] | None = None
        self._by_name: dict[str, Instruction] | None = None

    def __repr__(self) -> str:
        return f"<{'ENTRY ' if self.is_entry else ''}{self.name}>"

    @property
    def name(self) -> str:
        """Its name, without the percent sign; empty if the text has lost it."""
        return (self._header["name"] or b"").decode()

    @property
    def is_entry(self) -> bool:
        """Whether the module starts here."""
        return self._header["entry"] is not None

    @property
    def span(self) -> Span:
        """From its header to its closing brace and the attributes behind that."""
        start = self._header.start("entry" if self.is_entry else "name" if self.name else 0)
        start -= self.module.source.data[start - 1 : start] == b"%"
        return Span(start, self._trailer[1])

    @property
    def body_start(self) -> int:
        """The offset behind its opening brace."""
        return self._header.end()

    @property
    def attributes(self) -> Mapping[str, str]:
        """What stands behind its closing brace, as text by key: `execution_thread`."""
        return self._trailer[0]

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """Its instructions in text order."""
        if self._found is None:
            self._found = tuple(self._find())
        return self._found

    def instruction(self, name: str) -> Instruction | None:
        """The instruction of that name; of several, the last."""
        if self._by_name is None:
            self._by_name = {instruction.name: instruction for instruction in self.instructions}
        return self._by_name.get(name)

    @property
    def root(self) -> Instruction | None:
        """The instruction that gives the result: the one marked as root, else the last."""
        marked = [instruction for instruction in self.instructions if instruction.is_root]
        return (marked or self.instructions or (None,))[-1]

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters in the order of their numbers."""
        found = [instruction for instruction in self.instructions if instruction.opcode == "parameter"]
        return tuple(sorted(found, key=lambda parameter: number(parameter.literal) or 0))

    @property
    def broken(self) -> tuple[Span, ...]:
        """The statements that are no instructions because something in them is broken."""
        rows = {instruction.span for instruction in self.instructions}
        return tuple(statement for statement in self._statements or () if statement not in rows)

    @property
    def is_printed(self) -> bool:
        """Whether each line of the body is an instruction as XLA prints it.

        By their first characters they are; if one is not after all, reading the instructions finds it out.
        """
        return self._statements is None

    def follows(self, other: Computation) -> bool:
        """Whether this one's header is the next thing behind the end of the other, both being as printed."""
        return self._statements is None and other._statements is None and self._header.start() + 1 == other.body_end

    @property
    def _trailer(self) -> tuple[Mapping[str, str], int]:
        """The attributes behind its closing brace, and where they end."""
        data = self.module.source.data
        return attributes(data, min(self.body_end + 1, len(data)), len(data))

    def _find(self) -> Iterator[Instruction]:
        data, start, end = self.module.source.data, self.body_start, self.body_end
        if self._statements is None:
            rows = list(printed.ROW.finditer(data, start, end))
            if len(rows) == data.count(b"\n", start, end) - 1:
                ends = [row.start() for row in rows[1:]] + [end - 1]
                return map(Instruction, repeat(self), rows, (row.start() + 3 for row in rows), ends)
        # Few texts need it, and it has large patterns to compile.
        from . import freeform

        if self._statements is None:
            self._statements = freeform.statements(self.module.source, start, end)
        found = ((freeform.ROW.match(data, place.start, place.end), place) for place in self._statements)
        return (Instruction(self, row, place.start, place.end) for row, place in found if row)
