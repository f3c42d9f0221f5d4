"""An HLO module: where its computations are, and scans over all of its instructions."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice, pairwise

from ..errors import ParseError, Problem, readable
from ..expressions import compiled
from ..garbage import collection_paused
from ..sharding_syntax.mesh import MeshSyntax
from ..sharding_syntax.replica_groups import parse_mesh
from ..source import Frame, Source, Span, name_set
from . import printed
from .computation import Computation
from .graph import Graph
from .instruction import Instruction
from .problems import MAX_PROBLEMS, doubtful_lines, is_one_instruction, missing_entry, problems_in
from .prologue import parse_prologue, read_prologue
from .reading import read_module, read_part
from .references import broken_references
from .scan import Rows, instructions_with, read_rows
from .sections import Section, given_names

_MESH = compiled(rb"mesh\[[^\]\n]++\](?:,\s*+device_ids\s*+=\s*+\((?:[^()\n]|\([^()\n]*+\))*+\))?+")
_MADE_UP = compiled(r"_?axis_\d+")
"""Prefix of the partitioner's axis names in a mesh that it makes for groups without one."""


class HloModule:
    """A module. Opening it finds its computations; everything else is read on first use."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.prologue = parse_prologue(source)
        """Its header and the tables of source positions."""
        self._broken_lines: Sequence[Span] = ()
        self.problems_found = list(self._before())
        """Problems that were found before `problems` were read."""
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
        """The meshes that its replica groups and shardings are over, but for the partitioner's own, in text order.

        XLA of JAX 0.11 and later prints them.
        """
        # Most texts have none, and to find that out is ten times as fast as to look for the pattern.
        if all(computation.is_exact for computation in self.computations):
            found = _MESH.findall(self.source.data) if b"mesh[" in self.source.data else []
        else:
            instructions = (each for computation in self._outermost for each in computation.instructions)
            values = (value for each in instructions for value in each.attributes.values() if "mesh[" in value)
            found = [mesh for value in values for mesh in _MESH.findall(value.encode())]
        texts = dict.fromkeys(found)
        meshes = [readable(partial(parse_mesh, text.decode("utf-8", "replace"))) for text in texts]
        return tuple(dict.fromkeys(mesh for mesh in meshes if mesh is not None and not _is_made_up(mesh)))

    def computation(self, name: str) -> Computation | None:
        """The computation of that name; of several, the last."""
        return self._by_name.get(name)

    def instruction(self, computation: str, name: str) -> Instruction | None:
        """The instruction of that name in a computation; None if either is not there."""
        found = self.computation(computation)
        return None if found is None else found.instruction(name)

    def frames(self, stack_frame_id: int) -> tuple[Frame, ...]:
        """The call stack that an instruction's `stack_frame_id` stands for, innermost first; empty if unknown."""
        return self.prologue.frames(stack_frame_id)

    def instruction_at(self, offset: int) -> Instruction | None:
        """The innermost instruction whose text holds the byte at that offset."""
        place = bisect_right(self._outermost_starts, offset) - 1
        computation = self._outermost[place] if place >= 0 else None
        found = None
        while computation:
            found = computation.instruction_at(offset) or found
            nested = computation.nested_at(offset)
            computation = self.computation(nested.name) if nested else None
        return found

    def with_opcode(self, opcodes: str | Collection[str]) -> tuple[Instruction, ...]:
        """The instructions with one of some opcodes, in text order."""
        return tuple(instructions_with(self.source.data, self.computations, self._starts, name_set(opcodes)))

    def rows(self) -> Rows:
        """The name, type and opcode of every instruction, in text order."""
        return read_rows(self.source.data, self.computations)

    def opcode_counts(self) -> dict[str, int]:
        """Return the number of instructions of each opcode."""
        return dict(Counter(opcode for _, opcode in self.rows().kinds))

    @cached_property
    def graph(self) -> Graph:
        """Its definitions, uses and calls."""
        return Graph(self)

    @cached_property
    def doubtful_lines(self) -> Sequence[Span]:
        """The lines that begin as printed instructions do, and do not go on like one, in text order.

        Computations in which such a line is not a single instruction are read by the grammar first, and replaced.
        """
        data = self.source.data
        lines = tuple(doubtful_lines(data, self.computations))
        others = (line for line in lines if not is_one_instruction(data, line))
        self._broken_lines = tuple(islice(others, MAX_PROBLEMS + 1))
        if self._broken_lines:
            self._replace(self._broken_lines)
            for line in self._broken_lines:
                if not printed.ROW.match(data, line.start - 3):
                    _ = self._around(line).instructions
            lines, self._broken_lines = (
                tuple(line for line in some if self._around(line).is_printed) for some in (lines, self._broken_lines)
            )
        return lines

    def is_doubtful(self, place: Span) -> bool:
        """Return whether there is one of those."""
        first = bisect_left(self.doubtful_lines, place)
        return first < len(self.doubtful_lines) and self.doubtful_lines[first].start < place.end

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """The parts that could not be read, in text order; everything else is available."""
        layout = self.attributes.get("entry_computation_layout")
        _ = self.doubtful_lines
        inside = list(problems_in(self.source, self._broken_lines, self.computations))
        found = (
            *self.problems_found,
            *inside,
            *missing_entry(self.source, layout, self.entry),
        )
        if not found and self.name and any(each.is_entry for each in self.computations):
            # In what is damaged, or only a part, something is missing anyhow.
            found = tuple(islice(broken_references(self), MAX_PROBLEMS))
        return tuple(sorted(found, key=lambda problem: problem.span))

    def _before(self) -> Iterator[Problem]:
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
    def _outermost_starts(self) -> list[int]:
        return [computation.body_start for computation in self._outermost]

    @cached_property
    def _starts(self) -> list[int]:
        return [computation.body_start for computation in self.computations]

    def _around(self, line: Span) -> Computation:
        return self.computations[bisect_right(self._starts, line.start) - 1]

    def _replace(self, lines: Sequence[Span]) -> None:
        """Read the computations that these lines are in by the grammar, if they are in the language."""
        data = self.source.data
        found: list[Computation | Section] = []
        suspects = {self._around(line) for line in lines}
        for computation in self.computations:
            try:
                found += [computation] if computation not in suspects else _sections(data, computation.span)
            except ParseError:
                found.append(computation)
        if any(isinstance(each, Section) for each in found):
            self.computations = tuple(self._named(found))
            for derived in ("_by_name", "_outermost", "_outermost_starts", "_starts", "entry", "graph"):
                self.__dict__.pop(derived, None)

    def _find(self) -> Iterator[Computation]:
        data = self.source.data
        start = self.prologue.span.end
        first = printed.HEADER.match(data, start) if self.prologue.is_printed else None
        boundaries = list(printed.BOUNDARY.finditer(data, first.end() if first else start))
        if first and printed.is_printed(boundaries, len(data)) and self._has_a_line_for_each(start, len(data)):
            return (Computation(self, header, end.start() + 1) for header, end in pairwise([first, *boundaries]))
        return self._named(list(self._parts(start, first, boundaries)))

    def _named(self, found: Sequence[Computation | Section]) -> Iterator[Computation]:
        """The computations, each nested one with the name that XLA gives it."""
        sections = [each for each in found if isinstance(each, Section)]
        names = given_names(sections, (each.name for each in found if isinstance(each, Computation)))
        return (each if isinstance(each, Computation) else Computation.of_section(self, each, names) for each in found)

    def _parts(
        self, start: int, header: re.Match[bytes] | None, boundaries: list[re.Match[bytes]]
    ) -> Iterator[Computation | Section]:
        """Take the text apart where one computation ends and the next starts in the first column.

        `start` is where a part starts, `header` its header if all lines since then are as printed.
        """
        if header is None:
            # The first part may have a header of the module that is not as printed.
            start = self.prologue.span.start
        for boundary in boundaries:
            if not boundary["name"] and boundary.end() < len(self.source.data):
                # What does not go on with a header, nor ends the text, is a line that no printer wrote.
                header = None
                continue
            end = self._line_end(boundary.start() + 1)
            if header and boundary.lastgroup and self._has_a_line_for_each(start, end):
                yield Computation(self, header, boundary.start() + 1)
            else:
                yield from self._part(start, end)
            header, start = boundary, end
        yield from self._part(start, len(self.source.data))

    def _part(self, start: int, end: int) -> list[Section]:
        prologue = self.prologue.span
        prologue_end = prologue.end if start < prologue.end else None
        header, sections = read_part(self.source, start, end, self.problems_found, prologue_end)
        if header:
            self.prologue = read_prologue(self.source, header)
        return sections

    def _has_a_line_for_each(self, start: int, end: int) -> bool:
        """Return whether each line that begins as printed holds a single instruction.

        XLA's printers write no others.
        """
        data = self.source.data
        start = data.find(b"{\n", start, end)
        return data.count(b" = ", start, end) <= data.count(b"\n  ", start, end)

    def _line_end(self, offset: int) -> int:
        line = self.source.data.find(b"\n", offset)
        return line if line >= 0 else len(self.source.data)


def _sections(data: bytes, place: Span) -> list[Section]:
    return read_module(data, place.start, place.end)[1]


def _is_made_up(mesh: MeshSyntax) -> bool:
    return all(_MADE_UP.fullmatch(name) for name, _ in mesh.axes)


def parse_module(source: Source) -> HloModule:
    """Open a module; raises ParseError if the text is not HLO at all."""
    module = HloModule(source)
    is_begun = module.prologue.span.end and module.computations
    if not module.name and not is_begun and not any(computation.instructions for computation in module.computations):
        place = Span(0, len(source.data))
        raise ParseError(Problem("this is not the text of an HLO module", source, place, ("'HloModule'",)))
    return module
