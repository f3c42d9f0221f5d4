"""The computations of an HLO module, and their instructions, which are found on first use of one of them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING

from ..errors import readable
from ..expressions import compiled
from ..source import Span
from . import printed
from .fields import attributes, number
from .instruction import Instruction, instruction_of
from .reading import read_attributes, read_body
from .sections import Nested, Section, Statement

if TYPE_CHECKING:
    from .module import HloModule

_BLANKS = compiled(rb"[ \t]*+")
_START = attrgetter("start")
_SPAN_START = attrgetter("span.start")


class Computation:
    """One computation, by the printed line that it starts with, or by where it is in a text in another layout."""

    nested: Sequence[Nested] = ()
    """The computations that are written in its own instructions."""
    # What few of the many have, or is found later, is here once for all of them.
    _given_name: str | None = None
    _statements: tuple[Span, ...] | None = None
    _is_valid = False
    _found: tuple[Instruction, ...] | None = None
    _root: Instruction | None = None
    _parameters: tuple[Instruction, ...] | None = None
    _by_name: Mapping[str, Instruction] | None = None

    def __init__(self, module: HloModule, header: re.Match[bytes] | Section, body_end: int) -> None:
        self.module = module
        self.body_end = body_end
        """The offset of its closing brace, or of the end of the text if that is cut off."""
        self._header = header

    @classmethod
    def of_section(cls, module: HloModule, section: Section, names: Mapping[int, str]) -> Computation:
        """One in a text that is not as printed throughout.

        `names` has the names that are given to nested computations, by the offsets where these start.
        """
        self = cls(module, section, section.body.end)
        self._statements = section.statements
        self._is_valid = section.is_valid
        self.nested = tuple(Nested(place, names[place.start]) for place in section.nested)
        self._given_name = names[section.span.start] if section.is_nested else None
        return self

    def __repr__(self) -> str:
        return f"<{'ENTRY ' if self.is_entry else ''}{self.name}>"

    @property
    def name(self) -> str:
        """Its name, without the percent sign; empty if the text has lost it."""
        if isinstance(self._header, Section):
            return self._header.name if self._given_name is None else self._given_name
        return self._header["name"].decode()

    @property
    def is_nested(self) -> bool:
        """True if it is written in an instruction of another computation."""
        return self._given_name is not None

    @property
    def is_entry(self) -> bool:
        """True if the module starts here."""
        return self._header.is_entry if isinstance(self._header, Section) else self._header["entry"] is not None

    @property
    def span(self) -> Span:
        """From its header to its closing brace and the attributes behind that."""
        if isinstance(self._header, Section):
            return self._header.span
        start = self._header.start("entry" if self.is_entry else "name")
        start -= self.module.source.data[start - 1 : start] == b"%"
        return Span(start, attributes(self.module.source.data, self.body_end + 1, len(self.module.source.data))[1])

    @property
    def body_start(self) -> int:
        """The offset behind its opening brace."""
        return self._header.body.start if isinstance(self._header, Section) else self._header.end()

    @property
    def attributes(self) -> Mapping[str, str]:
        """Attributes after its closing brace, as text by key: `execution_thread`."""
        if self.is_nested:
            # What is behind a nested one is of the instruction.
            return {}
        data = self.module.source.data
        start, end = self.body_end + 1, self.span.end
        found, stop = attributes(data, start, end)
        read = readable(partial(read_attributes, data[start:end])) if stop < end else None
        return found if read is None else read

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
        place = bisect_right(self.instructions, offset, key=_START) - 1
        found = self.instructions[place] if place >= 0 else None
        return found if found and offset < found.span.end else None

    def nested_in(self, place: Span) -> Sequence[Nested]:
        """The computations that are written in an instruction of its own, which is at that place."""
        if not self.nested:
            return ()
        first, behind = (bisect_left(self.nested, offset, key=_SPAN_START) for offset in (place.start, place.end))
        return self.nested[first:behind]

    def nested_at(self, offset: int) -> Nested | None:
        """The computation that is written in an instruction of its own, and holds the byte at that offset."""
        place = bisect_right(self.nested, offset, key=_SPAN_START) - 1
        return self.nested[place] if place >= 0 and offset < self.nested[place].span.end else None

    @property
    def root(self) -> Instruction | None:
        """The instruction that gives the result: the one marked as root, else the last."""
        if self._root is None and self.instructions:
            marked = (instruction for instruction in reversed(self.instructions) if instruction.is_root)
            self._root = next(marked, self.instructions[-1])
        return self._root

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters in the order of their numbers."""
        if self._parameters is None:
            found = [instruction for instruction in self.instructions if instruction.opcode == "parameter"]
            self._parameters = tuple(sorted(found, key=lambda parameter: number(parameter.literal) or 0))
        return self._parameters

    @property
    def broken(self) -> tuple[Span, ...]:
        """The statements that are no instructions because something in them is broken."""
        rows = {instruction.span for instruction in self.instructions}
        return tuple(statement for statement in self._statements or () if statement not in rows)

    @property
    def doubtful_statements(self) -> Iterator[Statement]:
        """The statements that may not be in the language, where they are not as printed."""
        data, places = self.module.source.data, () if self._is_valid else self._statements or ()
        # Something is missing at the end of a line, not of its last word.
        ends = (_BLANKS.match(data, place.end) for place in places)
        found = (self._statement(Span(place.start, end.end())) for place, end in zip(places, ends, strict=True) if end)
        return (statement for statement in found if not printed.exact().fullmatch(statement.text))

    @property
    def is_printed(self) -> bool:
        """True if each line of the body is an instruction as XLA prints it.

        By their first characters they are; if one is not after all, reading the instructions finds it out.
        """
        return self._statements is None

    @property
    def is_exact(self) -> bool:
        """True if each line of the body is, to its last character, an instruction as XLA prints it."""
        return self.is_printed and not self.module.is_doubtful(Span(self.body_start, self.body_end))

    def follows(self, other: Computation) -> bool:
        """Return whether this one's header directly follows the end of the other, both being as printed."""
        if not (self.is_printed and other.is_printed) or isinstance(self._header, Section):
            return False
        return self._header.start() + 1 == other.body_end

    def _find(self) -> Iterator[Instruction]:
        source, start, end = self.module.source, self.body_start, self.body_end
        if self._statements is None:
            rows = list(printed.ROW.finditer(source.data, start, end))
            if len(rows) == source.data.count(b"\n", start, end) - 1:
                ends = [row.start() for row in rows[1:]] + [end - 1]
                return map(Instruction, repeat(self), rows, (row.start() + 3 for row in rows), ends)
            self._statements, self._is_valid = read_body(
                source, self.span.start, Span(start, end), self.module.problems_found
            )
        found = (instruction_of(self, self._statement(place)) for place in self._statements)
        return (instruction for instruction in found if instruction)

    def _statement(self, place: Span) -> Statement:
        return Statement(self.module.source.data, place, self.nested_in(place))
