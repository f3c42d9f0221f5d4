"""The computations of an HLO module, and their instructions, which are found when one of them is first asked for."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Protocol

from ..source import Frame, Source, Span
from . import printed
from .fields import attributes, number
from .instruction import Instruction
from .nested import Nested
from .section import Section


class Owner(Protocol):
    """What a computation needs of the module that it is in."""

    @property
    def source(self) -> Source:
        """The text that the module is in."""

    def frames(self, stack_frame_id: int) -> tuple[Frame, ...]:
        """The call stack of that number."""

    def computation(self, name: str) -> Computation | None:
        """The computation of that name."""


class Computation:
    """One computation."""

    nested: Sequence[Nested] = ()
    """The computations that are written in its own instructions."""
    # What few of the many have, or is found later, is here once for all of them.
    _given_name: str | None = None
    _statements: tuple[Span, ...] | None = None
    _found: tuple[Instruction, ...] | None = None
    _by_name: Mapping[str, Instruction] | None = None

    def __init__(self, module: Owner, header: re.Match[bytes], body_end: int) -> None:
        self.module = module
        self.body_end = body_end
        """The offset of its closing brace, or of the end of the text if that is cut off."""
        self._header = header

    @classmethod
    def of_section(cls, module: Owner, section: Section, names: Mapping[int, str]) -> Computation:
        """One in a text that is not as printed throughout.

        `names` has the names that are given to nested computations, by the offsets where these start.
        """
        self = cls(module, section.header, section.body_end)
        self._statements = section.statements
        self.nested = tuple(Nested(place, names[place.start]) for place in section.nested)
        self._given_name = names[section.start] if section.is_nested else None
        return self

    def __repr__(self) -> str:
        return f"<{'ENTRY ' if self.is_entry else ''}{self.name}>"

    @property
    def name(self) -> str:
        """Its name, without the percent sign; empty if the text has lost it."""
        return (self._header["name"] or b"").decode() if self._given_name is None else self._given_name

    @property
    def is_nested(self) -> bool:
        """Whether it is written in an instruction of another computation."""
        return self._given_name is not None

    @property
    def is_entry(self) -> bool:
        """Whether the module starts here."""
        return self._header["entry"] is not None

    @property
    def span(self) -> Span:
        """From its header to its closing brace and the attributes behind that."""
        start = self._header.start("entry" if self.is_entry else "name" if self._header["name"] else 0)
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

    def instruction_at(self, offset: int) -> Instruction | None:
        """The instruction whose text holds the byte at that offset."""
        place = bisect_right(self.instructions, offset, key=lambda instruction: instruction.span.start) - 1
        found = self.instructions[place] if place >= 0 else None
        return found if found and offset < found.span.end else None

    def nested_in(self, place: Span) -> Sequence[Nested]:
        """The computations that are written in an instruction of its own, which is at that place."""
        if not self.nested:
            return ()
        first, behind = (bisect_left(self.nested, offset, key=_start) for offset in (place.start, place.end))
        return self.nested[first:behind]

    def nested_at(self, offset: int) -> Nested | None:
        """The computation that is written in an instruction of its own, and holds the byte at that offset."""
        place = bisect_right(self.nested, offset, key=_start) - 1
        return self.nested[place] if place >= 0 and offset < self.nested[place].span.end else None

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
        end = self.body_end + data.startswith(b"}", self.body_end)
        # What is behind a nested one is of the instruction.
        return ({}, end) if self.is_nested else attributes(data, end, len(data))

    def _find(self) -> Iterator[Instruction]:
        data, start, end = self.module.source.data, self.body_start, self.body_end
        if self._statements is None:
            rows = list(printed.ROW.finditer(data, start, end))
            if len(rows) == data.count(b"\n", start, end) - 1:
                ends = [row.start() for row in rows[1:]] + [end - 1]
                return map(Instruction, repeat(self), rows, (row.start() + 3 for row in rows), ends)
        # Few texts need it, and it has large patterns to compile.
        from . import freeform, freeform_patterns

        if self._statements is None:
            self._statements = freeform.statements(self.module.source, start, end)
        found = ((freeform_patterns.ROW.match(data, place.start, place.end), place) for place in self._statements)
        return (Instruction(self, row, place.start, place.end) for row, place in found if row)


def _start(nested: Nested) -> int:
    return nested.span.start
