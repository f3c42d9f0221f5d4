"""Chains of links: from each part of a compiled collective to the partitioned and propagated programs, and JAX's own.

The operations before the partitioner are those whose numbers the partitioned collective has, since a compiler may lose
them when it combines several, or else the compiled one's. What the partitioner inserted has the number of the operation
for which it did, or of what makes the moved value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ...parsers.mlir import Operation, frames, names
from ...parsers.source import Span
from ..dataflow.mlir import Dataflow
from ..ir.derived import derived
from ..ir.languages.mlir import location_of
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..report import WRITTEN, Collective, Confidence, SourcePosition
from ..report.links import Evidence, Link, LinkedPart
from ..report.position import own_frame
from ..units import grouped
from .collectives import Line, equations_of
from .evidence import Match, confidence_of, strongest
from .numbers import equations_by_number, spans_of_tags, tags_in
from .parts import Part
from .rows import rows_of

T = TypeVar("T")

WEAKEST_FIRST: tuple[Confidence, ...] = ("none", "shape", "name", "exact")


def linked_parts(
    program: Program,
    stage: ParsedStage,
    collectives: Iterable[Collective],
    parts: Iterable[Part],
    propagated: ParsedStage | None,
    flow: Dataflow | None,
) -> tuple[LinkedPart, ...]:
    """The parts of a stage's collectives, in their order, with all that is known of what they were."""
    by_start = grouped((part.of.span.start, part) for part in parts)
    found = []
    for collective in collectives:
        for part in by_start.get(collective.span.start, ()):
            links = [*_partitioned(program, stage, part)]
            numbers = part.twin.numbers if part.twin is not None and part.twin.numbers else ()
            numbers = numbers or tags_in(stage, collective.span)
            own = _own(program, collective, part)
            if propagated is not None and flow is not None:
                match = rows_of(propagated, flow, numbers, own.op_name, own.source.frame)
                links += _links(propagated.name, match, lambda row: _of_row(flow, row))
            links += _lowered(program, numbers, own)
            links += _equations(program, numbers, own)
            weakest = min([link.confidence for link in links] or WEAKEST_FIRST[:1], key=WEAKEST_FIRST.index)
            found.append(LinkedPart(collective, part.index, part.type, part.alone, tuple(links), weakest))
    return tuple(found)


def _own(program: Program, collective: Collective, part: Part) -> Collective:
    """A collective with the name and the line of one of its parts: those that it has out of the partitioner."""
    known = collective.parts[part.index] if part.index < len(collective.parts) else None
    partitioned = program.hlo("hlo-spmd")
    made = None if part.twin is None or partitioned is None else partitioned.instruction_at(part.twin.span.start)
    if made is not None:
        name, source = made.op_name, SourcePosition.exact(made.frames)
    elif known is not None:
        name, source = known.op_name, known.source
    else:
        name, source = (collective.op_name, collective.source) if part.alone else (None, SourcePosition())
    origin = collective.origin if known is None else known.origin
    return replace(collective, source=source, op_name=name, origin=origin, result_types=(part.type,))


def _partitioned(program: Program, stage: ParsedStage, part: Part) -> Iterator[Link]:
    twin, partitioned = part.twin, program.stage("hlo-spmd")
    if twin is not None and part.evidence is not None and partitioned not in (None, stage):
        sure = confidence_of(part.evidence, part.rivals)
        yield Link("hlo-spmd", twin.name, twin.span, evidence=part.evidence, rivals=part.rivals, confidence=sure)


def _links(stage: str, match: Match[T], named: Callable[[T], tuple[str, Span]]) -> Iterator[Link]:
    """The links to all operations that were merged, each by its number, or to the likeliest one."""
    evidence = match.evidence
    if evidence is Evidence.NUMBER:
        for each in match.found:
            yield Link(stage, *named(each), evidence, 0, confidence_of(evidence, 0))
    elif evidence is not None:
        yield Link(stage, *named(match.found[0]), evidence, match.rivals, match.confidence)


def _of_row(flow: Dataflow, row: int) -> tuple[str, Span]:
    found = flow.rows[row]
    return " ".join((*found.results[:1], found.name.rpartition(".")[2])), Span(found.start, found.own[-1].end)


def _lowered(program: Program, numbers: Sequence[int], own: Collective) -> Iterator[Link]:
    stage = program.stage("stablehlo")
    if stage is None or stage.mlir is None:
        return
    module, frame = stage.mlir, own.source.frame
    name = (own.op_name or "").rstrip(":"), None if frame is None else (frame.file, frame.line)

    def of_span(span: Span) -> tuple[str, Span]:
        operation = module.operation_at(span.end - 1)
        return ("", span) if operation is None else (_named(operation), operation.span)

    match = strongest(
        {
            Evidence.NUMBER: lambda: spans_of_tags(stage, numbers),
            Evidence.NAME_AND_LINE: lambda: _by_name(stage).get(name, ()) if own.op_name else (),
        }
    )
    yield from _links("stablehlo", match, of_span)


def _named(operation: Operation) -> str:
    return " ".join((*operation.results[:1], operation.name.rpartition(".")[2]))


@derived
def _by_name(stage: ParsedStage) -> Mapping[tuple[str, Line | None], Sequence[Span]]:
    found, module = [], stage.mlir
    for operation in () if module is None else module.walk():
        if (
            module is not None
            and operation.text is module.text
            and (called := names(location := location_of(operation)))
        ):
            frame = own_frame(frames(location))
            line = None if frame is None else (frame.file, frame.line)
            found.append(((called[0].rstrip(":"), line), operation.span))
    return grouped(found)


def _equations(program: Program, numbers: Sequence[int], own: Collective) -> Iterator[Link]:
    text = program.jaxpr
    if text is None:
        return
    numbered = equations_by_number(text, program.capture.equations)
    match = equations_of(text, numbered, numbers, own)
    # Equations of its kind on its line, or of its shape, are none of what the partitioner inserted.
    if match.evidence is Evidence.NUMBER or own.origin in WRITTEN:
        yield from _links("jaxpr", match, lambda place: (place.equation.primitive, place.span))
