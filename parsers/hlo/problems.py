"""Problems of an HLO text, found without reading its correct parts.

One pattern passes over all instructions that are as printed; of what it doubts, the grammar in `hlo.lark` is the judge,
and says what it expected where.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice

from ..errors import ParseError, Problem
from ..source import Source, Span
from . import printed
from .computation import Computation
from .reading import problem_in, read_instruction
from .scan import stretches
from .sections import Statement
from .types import ArrayShape, HloType, OtherType, TupleShape, parse_type

MAX_BYTES = 1 << 16
"""The grammar is not asked about statements of more bytes than this: of those, only the place is reported."""

MAX_PROBLEMS = 1000
"""After so many, nobody reads on, and each costs a parse."""


def doubtful_lines(data: bytes, computations: Sequence[Computation]) -> Iterator[Span]:
    """The lines of computations as printed that are not, in all of them, as printed."""
    for stretch in stretches(computations):
        if stretch[0].is_printed:
            for row in printed.doubtful().finditer(data, stretch[0].body_start, stretch[-1].body_end):
                yield Span(row.start() + 3, data.find(b"\n", row.end()))


def problems_in(source: Source, lines: Sequence[Span], computations: Sequence[Computation]) -> Iterator[Problem]:
    """The problems in broken lines, and in the bodies of computations that are not printed, up to `MAX_PROBLEMS`."""
    others = (computation for computation in computations if not computation.is_printed)
    statements = (each for computation in others for each in computation.doubtful_statements)
    doubtful = chain((Statement(source.data, line) for line in lines), statements)
    problems = (problem for problem in map(partial(_judge, source), doubtful) if problem)
    yield from islice(problems, MAX_PROBLEMS)
    for problem in problems:
        yield Problem("there are more problems after this one", source, problem.span)
        return


def is_one_instruction(data: bytes, line: Span) -> bool:
    """Return whether a line is, to the grammar, the instruction that its first characters say, and nothing else."""
    if line.end - line.start > MAX_BYTES:
        return True
    try:
        read = read_instruction(data[line.start : line.end])
    except ParseError:
        return False
    row = printed.ROW.match(data, line.start - 3, line.end)
    return not read.has_bodies and row is not None and (row[1], row[3]) == (read.head[1], read.head[3])


def _judge(source: Source, statement: Statement) -> Problem | None:
    """Return the grammar's error for a statement."""
    text, place = statement.text, statement.place
    behind = Span(place.end, place.end)
    if len(text) > MAX_BYTES:
        return Problem("this instruction can not be read", source, behind, ("')'", "','"))
    if problem := problem_in(text):
        start, end = map(statement.offset, (problem.span.start, problem.span.end))
        return replace(problem, source=source, span=Span(start, end))
    if read_instruction(text).has_bodies:
        return Problem("an instruction that is laid out as XLA prints none", source, place)
    return None


def missing_entry(source: Source, layout: str | None, entry: Computation | None) -> Iterator[Problem]:
    """The problem of a text with no computation marked as entry, if its header promises another than the last.

    `layout` is the header's `entry_computation_layout`, `{(f32[8]{0})->f32[]}`, which every printer of XLA writes, and
    `entry` what the module takes for its entry.
    People leave out the mark: their last computation has the types of the header.
    """
    if layout is None or (entry is not None and entry.is_entry):
        return
    arguments, _, result = layout.strip()[1:-1].rpartition("->")
    if entry is not None and entry.root is not None:
        own = TupleShape(tuple(parse_type(each.type_text) for each in entry.parameters))
        if _agree(own, parse_type(arguments)) and _agree(parse_type(entry.root.type_text), parse_type(result)):
            return
    end = Span(len(source.data), len(source.data))
    yield Problem("the text ends before the entry computation", source, end, ("'ENTRY'",))


def _agree(one: HloType, other: HloType) -> bool:
    """Return whether two types are equal up to their layouts, which people leave out, too."""
    match one, other:
        case TupleShape(own), TupleShape(others):
            return len(own) == len(others) and all(map(_agree, own, others))
        case ArrayShape(), ArrayShape():
            return replace(one, layout=None) == replace(other, layout=None)
    return one == other or isinstance(one, OtherType) or isinstance(other, OtherType)
