"""Places that belong together: a line of the user's source, places in the stages' texts, and collectives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...parsers.source import Frame, Span
from ..collectives.stage import collectives_of
from ..correspondence.collectives import counterparts, equations_of
from ..correspondence.evidence import Evidence
from ..correspondence.numbers import equations_by_number, operations_at, spans_of_operations, tags_at
from ..correspondence.positions import frames_at, spans_of
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..report import Collective, Finding, Report, ShardedValue
from ..report.places import Place, ProbePlace, Selection, SourceLine, StagePlace
from ..report.position import own_frame, starts_at
from ..shardings.collective_causes import causes_of
from ..shardings.conflicts import conflicts_of
from ..shardings.explained import why
from ..shardings.table import values

MAX_STEPS = 200
"""Steps back that are told. In a deep network an axis may have come through every layer."""


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
            first = [c.span for c in collectives_of(report.program, stage) if starts_at(c.source.stack, frame)]
            spans = tuple(dict.fromkeys((*first, *spans_of(stage, file, line))))
            return Selection(place, (frame,), None, collectives=report.collectives_of_line(frame), spans=spans)
        case StagePlace(name, offset):
            origin = report.program.stage(name)
            here = () if origin is None else collectives_of(report.program, origin)
            collective = next((c for c in here if c.span.start <= offset < c.span.end), None)
            if collective is not None:
                return Selection(place, collective.source.stack, *_around(report, collective, stage))
            stack = () if origin is None else frames_at(origin, offset)
            known = () if origin is None or origin is stage else operations_at(report.program, origin, offset)
            exact = spans_of_operations(report.program, stage, known)
            spans = exact or (() if origin is stage else _first_known(stage, stack))
            own = own_frame(stack)
            around = () if own is None else report.collectives_of_line(own)
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


def values_at(program: Program, place: StagePlace) -> tuple[ShardedValue, ...]:
    """The values that the operation at a place makes; none of the operations around it."""
    origin, listed = program.stage(place.stage), values(program)
    home = program.stage(listed[0].stage) if listed else None
    if home is None or origin is None:
        return ()
    offsets = [place.offset]
    if home is not origin:
        found = spans_of_operations(program, home, operations_at(program, origin, place.offset))
        offsets = [span.start for span in found]
    text = home.source.data
    lines = {text.rfind(b"\n", 0, offset) for offset in offsets}
    return tuple(value for value in listed if text.rfind(b"\n", 0, value.span.start) in lines)


def _at(report: Report, place: Place, name: str, span: Span, stage: ParsedStage) -> Selection:
    inner = _placed(report, StagePlace(name, span.start), stage)
    return replace(inner, place=place, collective=None, spans=(span,) if name == stage.name else inner.spans)


def _of_probe(report: Report, place: ProbePlace, stage: ParsedStage) -> Selection:
    value = report.probes[place.number]
    path, collective = value.probe.path, value.collective
    if collective is not None:
        return Selection(place, collective.source.stack, *_around(report, collective, stage))
    span = report.equation_span(path[-1]) if path else None
    return Selection(place) if span is None else _at(report, place, "jaxpr", span, stage)


def _of_finding(report: Report, found: Finding, stage: ParsedStage) -> Selection:
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
    same = tuple(other for one in stages for other in _counterparts(report, collective, one))
    return collective, same, _spans(report, collective, stage)


def _spans(report: Report, collective: Collective, stage: ParsedStage) -> tuple[Span, ...]:
    text, origin = stage.jaxpr, report.program.stage(collective.stage)
    if text is not None:
        numbers = () if origin is None else tags_at(origin, collective.span)
        numbered = equations_by_number(text, report.program.capture.equations)
        match = equations_of(text, numbered, numbers, collective)
        # By its shape alone an equation is not shown as the one.
        found = () if match.evidence is Evidence.SHAPE else tuple(sorted(place.span for place in match.found))
    else:
        found = tuple(other.span for other in _counterparts(report, collective, stage))
    return found or _first_known(stage, collective.source.stack)


def _counterparts(report: Report, collective: Collective, stage: ParsedStage) -> Sequence[Collective]:
    origin = report.program.stage(collective.stage)
    return (
        () if origin is None else counterparts(origin, collective, stage, collectives_of(report.program, stage)).found
    )


def _first_known(stage: ParsedStage, stack: Iterable[Frame]) -> tuple[Span, ...]:
    return next(filter(None, (spans_of(stage, frame.file, frame.line) for frame in stack)), ())
