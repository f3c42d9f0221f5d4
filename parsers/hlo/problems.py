"""What is wrong with an HLO text, found without reading what is right.

One pattern passes over all instructions that are as printed; of what it doubts, the grammar in `hlo.lark` is the judge,
and says what it expected where.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..errors import ParseError, Problem
from ..grammar import Grammar
from ..source import Source, Span
from . import printed
from .computation import Computation
from .nested import Statement
from .scan import stretches

LONGEST = 1 << 16
"""The grammar is not asked about statements of more bytes than this: of those, only the place is reported."""

MOST_PROBLEMS = 1000
"""After so many, nobody reads on, and each costs a parse."""

_GRAMMAR = Grammar("hlo", {})


def problems_in(source: Source, computations: Sequence[Computation]) -> Iterator[Problem]:
    """The problems inside the bodies of computations, in text order, up to `MOST_PROBLEMS`."""
    found = 0
    for stretch in stretches(computations):
        places = _doubtful_lines(source.data, stretch) if stretch[0].is_printed else _doubtful_statements(stretch[0])
        for place in places:
            problem = _judge(source, Statement(source.data, place, stretch[0].nested_in(place)))
            if problem is None:
                continue
            found += 1
            if found > MOST_PROBLEMS:
                yield Problem("there are more problems after this one", source, place)
                return
            yield problem


def _doubtful_lines(data: bytes, computations: Sequence[Computation]) -> Iterator[Span]:
    for row in printed.doubtful().finditer(data, computations[0].body_start, computations[-1].body_end):
        yield Span(row.start() + 3, data.find(b"\n", row.end()))


def _doubtful_statements(computation: Computation) -> list[Span]:
    incomplete = [instruction.span for instruction in computation.instructions if not instruction.is_complete]
    return sorted([*computation.broken, *incomplete])


def _judge(source: Source, statement: Statement) -> Problem | None:
    """What the grammar has against a statement."""
    text = statement.text
    if len(text) > LONGEST:
        behind = Span(statement.place.end, statement.place.end)
        return Problem("this instruction can not be read", source, behind, ("')'", "','"))
    try:
        _GRAMMAR.parse(text.decode("utf-8", "replace"), "instruction")
    except ParseError as error:
        start, end = map(statement.offset, (error.problem.span.start, error.problem.span.end))
        return replace(error.problem, source=source, span=Span(start, end))
    return None
