"""Places that belong together: a line of the user's source, places in the stages' texts, and collectives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ...parsers.source import Frame, Span
from ..catalog.spellings import PRIMITIVES
from ..collectives.stage import collectives_of
from ..correspondence.numbers import operations_at, spans_of_equations, spans_of_operations, tags_at
from ..correspondence.positions import frames_at, spans_of
from ..ir.jaxpr_text import EquationPlace, JaxprText
from ..ir.stage import ParsedStage
from ..report import Collective, CollectiveCause, Confidence, Conflict, Finding, Report, ShardedValue, Why
from ..report.position import own_frame
from ..shardings.collective_causes import causes_of
from ..shardings.conflicts import conflicts_of
from ..shardings.explained import why

T = TypeVar("T")

MAX_STEPS = 200
"""Steps back that are told. In a deep network an axis may have come through every layer."""


class SourceLine(Record, frozen=True):
    """A line, counted from 1, of a file as the compiler's stack frames name it."""

    file: str
    line: int


class StagePlace(Record, frozen=True):
    """A byte offset in the text of a stage, as it is shown."""

    stage: str
    offset: int


class ProbePlace(Record, frozen=True):
    """A value that was looked at while the program ran: its number among the report's probes."""

    number: int


Place = SourceLine | StagePlace | Collective | ProbePlace | ShardedValue | Finding


class Selection(Record, frozen=True):
    """Everything that belongs to a place.

    `stack` is where it comes from, innermost first. `collective` is the one that stands at the place, or is the place;
    `collectives` are the listed ones that share its line, or correspond to it. `spans` are places in the text of the
    stage that was asked for, closest first. `confidence` is `exact` where they come from the very operation at the
    place, `name` where they share its line. `why` and `conflicts` tell of a value how it came to be sharded so, and
    `causes` of a collective what it is there for.
    """

    place: Place
    stack: tuple[Frame, ...] = ()
    collective: Collective | None = None
    collectives: tuple[Collective, ...] = ()
    spans: tuple[Span, ...] = ()
    confidence: Confidence = "name"
    why: tuple[Why, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    causes: tuple[CollectiveCause, ...] = ()

    @property
    def own_frame(self) -> int:
        """The number in the stack of the innermost frame of the user's program; 0 where there is none."""
        own = own_frame(self.stack)
        return 0 if own is None else self.stack.index(own)


def linked(report: Report, place: Place, stage: ParsedStage) -> Selection:
    """Everything that belongs to a place, with its places in the text of one stage."""
    found = _placed(report, place, stage)
    if isinstance(place, ShardedValue):
        met = conflicts_of(report.program, place)
        return replace(found, why=why(report.program, place, MAX_STEPS), conflicts=met)
    if found.collective is not None:
        return replace(found, causes=causes_of(report.program, found.collective))
    return found


def _placed(report: Report, place: Place, stage: ParsedStage) -> Selection:
    match place:
        case SourceLine(file, line):
            frame = Frame(file, "", line)
            first = [c.span for c in collectives_in(report, stage) if _starts_at(c.source.stack, frame)]
            spans = tuple(dict.fromkeys((*first, *spans_of(stage, file, line))))
            return Selection(place, (frame,), None, collectives_of_line(report, frame), spans)
        case StagePlace(name, offset):
            origin = report.program.stage(name)
            here = () if origin is None else collectives_in(report, origin)
            collective = next((c for c in here if c.span.start <= offset < c.span.end), None)
            if collective is not None:
                return Selection(place, collective.source.stack, *_around(report, collective, stage))
            stack = () if origin is None else frames_at(origin, offset)
            known = () if origin is None or origin is stage else operations_at(report.program, origin, offset)
            exact = spans_of_operations(report.program, stage, known)
            spans = exact or (() if origin is stage else _first_known(stage, stack))
            own = own_frame(stack)
            around = () if own is None else collectives_of_line(report, own)
            return Selection(place, stack, None, around, spans, "exact" if exact else "name" if spans else "none")
        case ProbePlace():
            return _of_probe(report, place, stage)
        case ShardedValue(stage=name, span=span, role="argument" | "output"):
            return Selection(place, spans=(span,) if name == stage.name else ())
        case ShardedValue(stage=name, span=span):
            # From inside its line: where that ends stands its location.
            return _at(report, place, name, span, stage)
        case Collective():
            return Selection(place, place.source.stack, *_around(report, place, stage))
        case Finding():
            return _of_finding(report, place, stage)


def collectives_in(report: Report, stage: ParsedStage) -> tuple[Collective, ...]:
    """The collectives in the text of any stage, whether the report lists them or not."""
    return collectives_of(report.program, stage)


def counterparts(report: Report, collective: Collective, stage: ParsedStage) -> tuple[Collective, ...]:
    """The collectives of a stage that a collective of another stage corresponds to, as far as that can be told.

    They are of its kind and from its line; of those, the ones of the same operation, in its direction, over its axes,
    of its types, where there are any.
    """
    if collective.stage == stage.name:
        return (collective,)
    frame = collective.source.frame
    if frame is None:
        return ()
    alike = [
        other
        for other in collectives_in(report, stage)
        if other.kind == collective.kind and _starts_at(other.source.stack, frame)
    ]
    origin = report.program.stage(collective.stage)
    numbers = frozenset() if origin is None else frozenset(tags_at(origin, collective.span))
    alike = _narrowed(alike, lambda other: not numbers.isdisjoint(tags_at(stage, other.span)))
    alike = _narrowed(alike, lambda other: other.direction == collective.direction)
    alike = _narrowed(alike, lambda other: other.axes == collective.axes)
    return tuple(_narrowed(alike, lambda other: other.operand_types == collective.operand_types))


def equation_span(report: Report, equation: str) -> Span | None:
    """Return the place in the jaxpr's text of an equation, by the id that `VariableVariance.equation` holds."""
    text = report.program.jaxpr
    equations = () if text is None else text.equations
    return next((place.span for place in equations if place.id == equation), None)


def _at(report: Report, place: Place, name: str, span: Span, stage: ParsedStage) -> Selection:
    inner = _placed(report, StagePlace(name, span.start), stage)
    return replace(inner, place=place, collective=None, spans=(span,) if name == stage.name else inner.spans)


def _of_probe(report: Report, place: ProbePlace, stage: ParsedStage) -> Selection:
    value = report.probes[place.number]
    path, collective = value.probe.path, value.collective
    if collective is not None:
        return Selection(place, collective.source.stack, *_around(report, collective, stage))
    span = equation_span(report, path[-1]) if path else None
    return Selection(place) if span is None else _at(report, place, "jaxpr", span, stage)


def _of_finding(report: Report, found: Finding, stage: ParsedStage) -> Selection:
    """Return what belongs to the place of a finding: in the text where it was found, or else at its line."""
    place, stack = found.place, found.place.source.stack
    if place.stage is not None and place.span is not None:
        inner = _at(report, found, place.stage, place.span, stage)
        return replace(inner, stack=stack or inner.stack)
    frame = own_frame(stack)
    if frame is not None:
        return replace(_placed(report, SourceLine(frame.file, frame.line), stage), place=found, stack=stack)
    return Selection(found)


def _around(
    report: Report, collective: Collective, stage: ParsedStage
) -> tuple[Collective, tuple[Collective, ...], tuple[Span, ...]]:
    listed = dict.fromkeys(other.stage for other in report.collectives)
    stages = [found for name in listed if (found := report.program.stage(name)) is not None]
    same = tuple(other for one in stages for other in counterparts(report, collective, one))
    return collective, same, _spans(report, collective, stage)


def _spans(report: Report, collective: Collective, stage: ParsedStage) -> tuple[Span, ...]:
    text, origin = stage.jaxpr, report.program.stage(collective.stage)
    if text is not None:
        numbers = () if origin is None else tags_at(origin, collective.span)
        found = spans_of_equations(report.program, text, numbers)
        found = found or tuple(place.span for place in _equations(text, collective))
    else:
        found = tuple(other.span for other in counterparts(report, collective, stage))
    return found or _first_known(stage, collective.source.stack)


def _equations(text: JaxprText, collective: Collective) -> list[EquationPlace]:
    frame = collective.source.frame
    found = [
        place
        for place in text.equations
        if PRIMITIVES.get(place.equation.primitive) == collective.kind
        and frame is not None
        and _starts_at(text.stack(place.equation), frame)
    ]
    return _narrowed(found, lambda place: tuple(map(AxisRef, place.equation.axes or ())) == collective.axes)


def _first_known(stage: ParsedStage, stack: Iterable[Frame]) -> tuple[Span, ...]:
    """The places from the innermost line of a stack that the stage knows of."""
    return next(filter(None, (spans_of(stage, frame.file, frame.line) for frame in stack)), ())


def collectives_of_line(report: Report, frame: Frame) -> tuple[Collective, ...]:
    """The listed collectives from a line; those from lines that it calls come last."""
    inside = [c for c in report.collectives if any(_starts_at((one,), frame) for one in c.source.stack)]
    return tuple(sorted(inside, key=lambda c: not _starts_at(c.source.stack, frame)))


def _starts_at(stack: tuple[Frame, ...], frame: Frame) -> bool:
    """Return whether the innermost frame, or the user's own frame, of a stack is on a line."""
    ends = (stack[0], own_frame(stack)) if stack else ()
    return any(each is not None and (each.file, each.line) == (frame.file, frame.line) for each in ends)


def _narrowed(items: list[T], wanted: Callable[[T], bool]) -> list[T]:
    return [item for item in items if wanted(item)] or items
