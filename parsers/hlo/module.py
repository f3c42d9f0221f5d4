"""An HLO module: where its computations are, and scans over all of its instructions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from itertools import pairwise, repeat
from operator import attrgetter

from ..errors import ParseError, Problem
from ..garbage import collection_paused
from ..sharding_syntax.mesh import MeshSyntax
from ..source import Frame, Source, Span
from . import printed
from .computation import Computation
from .instruction import Instruction
from .missing_entry import missing_entry
from .nested import in_a_line
from .problems import problems_in
from .prologue import parse_prologue
from .scan import AttributeRow, Rows, instructions_with, read_attributes, read_rows
from .section import Section, given_names


class HloModule:
    """A module. Opening it finds its computations; everything else is read when it is first asked for."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.prologue = parse_prologue(source)
        """Its header and the tables of source positions."""
        self._problems = list(self._before())
        with collection_paused():
            self.computations: tuple[Computation, ...] = tuple(self._find())
        """Its computations in text order."""

    def __repr__(self) -> str:
        return f"<HloModule {self.name}: {len(self.computations)} computations>"

    @property
    def name(self) -> str:
        """Its name; empty if the text is only a part of a module."""
        return self.prologue.name

    @property
    def attributes(self) -> Mapping[str, str]:
        """The attributes in its header as text, by key."""
        return self.prologue.attributes

    @cached_property
    def entry(self) -> Computation | None:
        """The computation that it starts with: the one marked as entry, else the last."""
        marked = [computation for computation in self.computations if computation.is_entry]
        return (marked or self._outermost or (None,))[-1]

    @cached_property
    def meshes(self) -> tuple[MeshSyntax, ...]:
        """The meshes that its replica groups and shardings are over, as far as the text has their axes' names."""
        # Few ask, and it has patterns to compile.
        from .meshes import meshes_in

        return meshes_in(self.source.data)

    def computation(self, name: str) -> Computation | None:
        """The computation of that name; of several, the last."""
        return self._by_name.get(name)

    def frames(self, stack_frame_id: int) -> tuple[Frame, ...]:
        """The call stack that an instruction's `stack_frame_id` stands for, innermost first; empty if unknown."""
        return self.prologue.frames(stack_frame_id)

    def instruction_at(self, offset: int) -> Instruction | None:
        """The innermost instruction whose text holds the byte at that offset."""
        place = bisect_right(self._outermost, offset, key=attrgetter("body_start")) - 1
        computation = self._outermost[place] if place >= 0 else None
        found = None
        while computation:
            found = computation.instruction_at(offset) or found
            nested = computation.nested_at(offset)
            computation = self.computation(nested.name) if nested else None
        return found

    def with_opcode(self, opcodes: Collection[str]) -> tuple[Instruction, ...]:
        """The instructions with one of some opcodes, in text order."""
        return tuple(instructions_with(self.source.data, self.computations, self._starts, frozenset(opcodes)))

    def rows(self) -> Rows:
        """The name, type and opcode of every instruction, in text order."""
        return read_rows(self.source.data, self.computations)

    def attribute_rows(self) -> Iterator[AttributeRow]:
        """The name of every instruction and its attributes, in text order."""
        return read_attributes(self.source.data, self.computations)

    def opcode_counts(self) -> dict[str, int]:
        """How many instructions there are of each opcode."""
        return dict(Counter(opcode for _, opcode in self.rows().kinds))

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """What could not be read, in text order; all else is there."""
        layout = self.attributes.get("entry_computation_layout")
        found = (
            *self._problems,
            *problems_in(self.source, self.computations),
            *missing_entry(self.source, layout, self.entry),
        )
        return tuple(sorted(found, key=lambda problem: problem.span))

    def _before(self) -> Iterator[Problem]:
        """What stands in front of the module."""
        place = Span(0, self.prologue.span.start)
        if place.end:
            yield Problem("this is no part of an HLO module", self.source, place, ("'HloModule'",))

    @cached_property
    def _by_name(self) -> Mapping[str, Computation]:
        return {computation.name: computation for computation in self.computations}

    @cached_property
    def _outermost(self) -> tuple[Computation, ...]:
        return tuple(computation for computation in self.computations if not computation.is_nested)

    @cached_property
    def _starts(self) -> list[int]:
        return [computation.body_start for computation in self.computations]

    def _find(self) -> Iterator[Computation]:
        data = self.source.data
        start = self.prologue.span.end
        first = printed.HEADER.match(data, start)
        boundaries = list(printed.BOUNDARY.finditer(data, first.end() if first else start))
        if first and printed.is_printed(boundaries, len(data)) and not self._has_nested_in_a_line(start, len(data)):
            return (Computation(self, header, end.start() + 1) for header, end in pairwise([first, *boundaries]))
        sections = list(self._sections(start, first, boundaries))
        return map(Computation.of_section, repeat(self), sections, repeat(given_names(sections)))

    def _sections(
        self, start: int, header: re.Match[bytes] | None, boundaries: list[re.Match[bytes]]
    ) -> Iterator[Section]:
        """Take the text apart where one computation ends and the next starts in the first column.

        `start` is where a piece starts, `header` its header if all lines since then are as printed.
        """
        # Few texts need it, and it has large patterns to compile.
        from . import freeform

        for boundary in boundaries:
            if not boundary["name"] and boundary.end() < len(self.source.data):
                # What does not go on with a header, nor ends the text, is a line that no printer wrote.
                header = None
                continue
            end = self._line_end(boundary.start() + 1)
            if header and boundary.lastgroup and not self._has_nested_in_a_line(start, end):
                yield Section(header, boundary.start() + 1, end)
            else:
                yield from freeform.sections(self.source, start, end, self._problems)
            header, start = boundary, end
        yield from freeform.sections(self.source, start, len(self.source.data), self._problems)

    def _has_nested_in_a_line(self, start: int, end: int) -> bool:
        """Whether lines as printed have computations in them.

        No printer writes those, and all of XLA's begin with the layout of the entry computation, so that the long
        texts, which printers write, need not be searched.
        """
        is_of_printer = "entry_computation_layout" in self.attributes
        return not is_of_printer and in_a_line().search(self.source.data, start, end) is not None

    def _line_end(self, offset: int) -> int:
        line = self.source.data.find(b"\n", offset)
        return line if line >= 0 else len(self.source.data)


def parse_module(source: Source) -> HloModule:
    """Open a module; raises ParseError if the text is not HLO at all."""
    module = HloModule(source)
    is_begun = module.prologue.span.end and module.computations
    if not module.name and not is_begun and not any(computation.instructions for computation in module.computations):
        place = Span(0, len(source.data))
        raise ParseError(Problem("this is not the text of an HLO module", source, place, ("'HloModule'",)))
    return module
