"""Collectives that are the same ones in another stage, and the equations of the jaxpr that they come from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ..catalog.spellings import PRIMITIVES, Kind
from ..ir.derived import derived
from ..ir.jaxpr_text import EquationPlace, JaxprText
from ..ir.stage import ParsedStage
from ..ir.types import ArrayType
from ..report import Collective, SourcePosition
from ..report.position import starts_at
from ..units import grouped
from .evidence import Evidence, Match, narrowed, strongest
from .numbers import tags_at
from .parts import Part


def counterparts(
    origin: ParsedStage, collective: Collective, stage: ParsedStage, there: Iterable[Collective]
) -> Match[Collective]:
    """The collectives in a stage that are one of another stage, `origin`."""
    if origin is stage:
        return Match((collective,), Evidence.NUMBER)
    alike = [each for each in there if each.kind == collective.kind]
    numbers, frame = frozenset(tags_at(origin, collective.span)), collective.source.frame
    match = strongest(
        {
            Evidence.NUMBER: lambda: [each for each in alike if not numbers.isdisjoint(tags_at(stage, each.span))],
            Evidence.NAME_AND_LINE: lambda: [each for each in alike if starts_at(each.source.stack, frame)],
        }
    )
    left = narrowed(
        match.found,
        lambda each: starts_at(each.source.stack, frame),
        lambda each: each.direction == collective.direction,
        lambda each: each.axes == collective.axes,
        lambda each: each.operand_types == collective.operand_types,
    )
    return Match(left, match.evidence)


def equations_of(
    text: JaxprText, numbered: Mapping[int, EquationPlace], numbers: Collection[int], collective: Collective
) -> Match[EquationPlace]:
    """The equations that a collective comes from; `numbered` are those of operations with a number."""
    frame, axes = collective.source.frame, collective.axes
    of_kind = _by_kind(text).get(collective.kind, ())
    return strongest(
        {
            Evidence.NUMBER: lambda: [*dict.fromkeys(numbered[each] for each in numbers if each in numbered)],
            Evidence.NAME_AND_LINE: lambda: narrowed(
                [each for each in of_kind if starts_at(text.stack(each.equation), frame)],
                lambda each: tuple(map(AxisRef, each.equation.axes or ())) == axes,
            ),
            Evidence.SHAPE: lambda: equations_alike(text, collective),
        }
    )


def equations_alike(text: JaxprText, collective: Collective) -> Sequence[EquationPlace]:
    """The equations of its kind, axes and types."""
    if collective.axes is None:
        return ()
    return _by_type(text).get((collective.kind, frozenset(collective.axes), collective.result_types), ())


@derived
def _by_kind(text: JaxprText) -> Mapping[str, Sequence[EquationPlace]]:
    return grouped((kind, place) for place in text.equations if (kind := PRIMITIVES.get(place.equation.primitive)))


@derived
def _by_type(
    text: JaxprText,
) -> Mapping[tuple[str, frozenset[AxisRef], tuple[ArrayType, ...]], Sequence[EquationPlace]]:
    return grouped(
        ((kind, frozenset(map(AxisRef, axes)), tuple(output.type.array for output in each.equation.outputs)), each)
        for kind, places in _by_kind(text).items()
        for each in places
        if (axes := each.equation.axes) is not None
    )


Line = tuple[str, int]


class _Compiled(Record, frozen=True):
    collective: Collective
    numbers: frozenset[int]
    lines: frozenset[Line]


class CompiledCollectives:
    """The collectives of the compiled program, or of the partitioned one, by what they were before."""

    def __init__(self, stage: ParsedStage, collectives: Iterable[Collective], parts: Iterable[Part]) -> None:
        by_start = {each.span.start: each for each in collectives}
        self._by_twin: dict[str, list[tuple[Collective, Part]]] = {}
        numbers: dict[int, set[int]] = {start: set(tags_at(stage, each.span)) for start, each in by_start.items()}
        for part in parts:
            start, twin = part.of.span.start, part.twin
            if twin is not None and start in by_start:
                self._by_twin.setdefault(twin.name, []).append((by_start[start], part))
                numbers[start].update(twin.numbers)
        known = (_Compiled(each, frozenset(numbers[start]), _lines(each)) for start, each in by_start.items())
        self._alike = grouped(
            ((one.collective.kind, frozenset(one.collective.axes), size), one)
            for one in known
            if one.collective.axes is not None
            for size in _sizes(one.collective)
        )

    def of_equation(
        self, kind: Kind, axes: Iterable[str], type: ArrayType, numbers: Set[int], source: SourcePosition
    ) -> Match[Collective]:
        """The collectives of that kind, axes and shape that come from an equation with these numbers, on that line.

        A compiler may widen element types, and make one collective of several, with the line of one of them. Where
        none has that shape, those that have as many elements: a TPU's compiler keeps the blocks of a gather apart.
        """
        over = frozenset(map(AxisRef, axes))
        sizes: tuple[object, ...] = type.shape, type.elements
        alike = next((found for size in sizes if (found := self._alike.get((kind, over, size)))), ())
        line = (source.stack[0].file, source.stack[0].line) if source.stack else None
        match = strongest(
            {
                Evidence.NUMBER: lambda: [each for each in alike if not numbers.isdisjoint(each.numbers)],
                Evidence.NAME_AND_LINE: lambda: [each for each in alike if line in each.lines],
                # One that stands alone on another line is another one.
                Evidence.SHAPE: lambda: [each for each in alike if is_combined(each.collective) or not each.lines],
            }
        )
        return Match([each.collective for each in match.found], match.evidence)

    def of_instructions(self, kinds: Mapping[str, Kind]) -> Mapping[Collective, frozenset[int]]:
        """The collectives that come from partitioned instructions, by name, and the numbers of their parts that do."""
        found = grouped(
            (collective, part.index)
            for name, kind in kinds.items()
            for collective, part in self._by_twin.get(name, ())
            if collective.kind == kind
        )
        return {each: frozenset(parts) for each, parts in found.items()}


def is_combined(collective: Collective) -> bool:
    """Return whether the compiler combined it from several: its bytes are not those of one."""
    return len(collective.result_types) > 1 or bool(collective.parts)


def _sizes(one: Collective) -> Iterable[object]:
    """Its shapes and numbers of elements; CPUs exchange the parts of an array one by one."""
    types = one.part_types
    sizes: list[object] = [size for type in types for size in (type.shape, type.elements)]
    if one.kind == "all-to-all":
        sizes.append(sum(type.elements or 0 for type in types))
    return dict.fromkeys(sizes)


def _lines(one: Collective) -> frozenset[Line]:
    places = [one.source, *(part.source for part in one.parts)]
    return frozenset((place.stack[0].file, place.stack[0].line) for place in places if place.stack)
