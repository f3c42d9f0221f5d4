"""Operations of the StableHLO that the places of a stage come from: exactly, by the numbers that were given to them.

The equations of a jaxpr have theirs from `capture/worker/equation_numbers.py`.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...parsers.source import Span
from ..ir.derived import derived
from ..ir.jaxpr_text import EquationPlace, JaxprText
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..units import grouped

_ALIAS = re.compile(rb"(#loc\d*) = ")
_TRAILING = re.compile(rb"loc\((#loc\d*)\)$", re.MULTILINE)
_LAST_LOCATION = re.compile(rb"loc\(#loc\d*\)(?=\s*\Z)")
_USED = re.compile(r"loc\((#loc\d*)\)")


def tags_in(stage: ParsedStage, span: Span) -> tuple[int, ...]:
    """The numbers of the operations that an HLO instruction comes from: several where XLA made one of several."""
    offsets, numbers = _columns(stage)
    first = bisect_left(offsets, span.start)
    last = bisect_left(offsets, span.end, lo=first)
    return tuple(dict.fromkeys(numbers[first:last]))


def tag_of_location(stage: ParsedStage, location: str | None) -> int | None:
    """The number of an operation of MLIR with that location, `loc(#loc13)`."""
    used = None if location is None else _USED.fullmatch(location)
    return None if used is None else _aliases(stage).get(used[1])


@derived
def _columns(stage: ParsedStage) -> tuple[array[int], array[int]]:
    pairs = array("I", stage.stage.tags)
    return pairs[::2], pairs[1::2]


@derived
def _aliases(stage: ParsedStage) -> Mapping[str, int]:
    """The numbers by the aliases of locations."""
    data = stage.source.data
    found = {}
    for offset, number in zip(*_columns(stage), strict=True):
        alias = _ALIAS.match(data, stage.source.line_around(offset).start)
        if alias is not None:
            found[alias[1].decode()] = number
    return found


def tagged_places(stage: ParsedStage) -> Iterator[tuple[int, int]]:
    """Offsets in a stage's text, each with the number of the operation that what stands there comes from."""
    return zip(*_columns(stage), strict=True)


def spans_of_tags(stage: ParsedStage, tags: Sequence[int]) -> tuple[Span, ...]:
    """The lines of a stage's text that come from operations of these numbers, in text order."""
    lines = _lines(stage)
    return tuple(sorted({span for tag in tags for span in lines.get(tag, ())}))


def tags_at(stage: ParsedStage, span: Span) -> tuple[int, ...]:
    """The numbers of the operations that a line, or an instruction, comes from."""
    if stage.dialect == "hlo":
        return tags_in(stage, span)
    found = _LAST_LOCATION.search(stage.source.data[span.start : span.end])
    tag = None if found is None else tag_of_location(stage, found[0].decode())
    return () if tag is None else (tag,)


@derived
def _lines(stage: ParsedStage) -> Mapping[int, tuple[Span, ...]]:
    found: dict[int, list[Span]] = {}
    if stage.dialect == "hlo":
        for offset, number in zip(*_columns(stage), strict=True):
            found.setdefault(number, []).append(stage.source.line_around(offset))
    else:
        aliases = _aliases(stage)
        for use in _TRAILING.finditer(stage.source.data):
            tag = aliases.get(use[1].decode())
            if tag is not None:
                found.setdefault(tag, []).append(stage.source.line_around(use.start()))
    return {number: tuple(spans) for number, spans in found.items()}


EquationNumber = tuple[int, int]
"""The index of a jaxpr, and that of an equation in it."""


def operations_at(program: Program, stage: ParsedStage, offset: int) -> tuple[int, ...]:
    """The numbers of the operations that what stands at an offset of any stage comes from, or became."""
    if stage.jaxpr is not None:
        return operations_of(program, stage.jaxpr, offset)
    return tags_at(stage, stage.source.line_around(offset))


def spans_of_operations(program: Program, stage: ParsedStage, operations: Sequence[int]) -> tuple[Span, ...]:
    """Return the spans of operations with these numbers, in any stage."""
    if stage.jaxpr is not None:
        return spans_of_equations(program, stage.jaxpr, operations)
    return spans_of_tags(stage, operations)


def operations_of(program: Program, text: JaxprText, offset: int) -> tuple[int, ...]:
    """The numbers of the operations that the equation at an offset of the printed jaxpr became.

    One that stands for others, as a call does, may be nothing by itself: then they are those of its bodies.
    """
    place = text.equation_at(offset)
    by_equation = _by_equation(text, program.capture.equations)
    waiting = [] if place is None else [(place.jaxpr, place.index)]
    seen: set[EquationNumber] = set()
    while waiting and not (found := [number for each in waiting for number in by_equation.get(each, ())]):
        seen.update(waiting)
        waiting = [each for each in dict.fromkeys(_inside(text, waiting)) if each not in seen]
    return tuple(dict.fromkeys(found)) if waiting else ()


def spans_of_equations(program: Program, text: JaxprText, operations: Iterable[int]) -> tuple[Span, ...]:
    """Return the spans of the equations that operations with these numbers come from."""
    numbered = equations_by_number(text, program.capture.equations)
    return tuple(sorted({numbered[number].span for number in operations if number in numbered}))


def _inside(text: JaxprText, equations: Iterable[EquationNumber]) -> Iterable[EquationNumber]:
    jaxprs = text.program.jaxprs
    for jaxpr, index in equations:
        for _, body in jaxprs[jaxpr].equations[index].bodies:
            yield from ((body, position) for position in range(len(jaxprs[body].equations)))


@derived
def equations_by_number(text: JaxprText, equations: bytes) -> Mapping[int, EquationPlace]:
    """The equations that operations come from, by their numbers; `equations` are those of `Capture`."""
    numbers = array("I", equations)
    places = {(place.jaxpr, place.index): place for place in text.equations}
    triples = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    return {number: places[jaxpr, index] for number, jaxpr, index in triples if (jaxpr, index) in places}


def numbers_of(program: Program, text: JaxprText, place: EquationPlace) -> tuple[int, ...]:
    """The numbers of the operations that an equation became."""
    return _by_equation(text, program.capture.equations).get((place.jaxpr, place.index), ())


@derived
def _by_equation(text: JaxprText, equations: bytes) -> Mapping[EquationNumber, tuple[int, ...]]:
    numbered = equations_by_number(text, equations).items()
    found = grouped(((place.jaxpr, place.index), number) for number, place in numbered)
    return {equation: tuple(numbers) for equation, numbers in found.items()}
