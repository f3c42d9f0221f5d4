"""Equations and collectives of the partitioned program as they were compiled, and what others would cost instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from ....parsers.errors import ParseError
from ....parsers.hlo import Instruction
from ....parsers.sharding_syntax.mesh import AxisRef
from ....parsers.source import Frame
from ...catalog.spellings import HLO_OPCODES
from ...cost.collectives import estimate
from ...cost.places import machine_of
from ...ir import hlo_types
from ...ir.jaxpr_text import EquationPlace
from ...ir.types import ArrayType
from ...links.operation_ids import tags_in
from ...report import Collective, Kind, Report, SourcePosition
from .jaxpr_flow import At, Flow
from .shapes import elements_of, shape_of

GATHERS = ("all_gather", "all_gather_invariant", "all_gather_reduced")

SUMS = ("psum", "psum_invariant", "psum2", "unreduced_psum")

SCATTERS = ("reduce_scatter",)
"""Primitives of which each device gets a block of the sum."""


def is_compiled(report: Report) -> bool:
    """Whether the compiled program is known."""
    return report.capture.stage("hlo") is not None


def compiled_as(
    report: Report, kind: Kind, axes: Iterable[str], type: str, source: SourcePosition
) -> Iterator[Collective]:
    """The collectives of the compiled program of that kind, axes and shape, from that line if any says so.

    A compiler may widen element types, and make one collective of several, with the line of one of them. Where none has
    that shape, those that have as many elements: a TPU's compiler keeps the blocks of a gather apart.
    """
    wanted, shape = set(map(AxisRef, axes)), shape_of(type)
    there = [
        c
        for c in report.collectives
        if c.stage == "hlo" and c.kind == kind and c.axes is not None and set(c.axes) == wanted
    ]
    found = [c for c in there if shape in [each.shape for each in _types(c)]]
    found = found or [c for c in there if elements_of(type) in [each.elements for each in _types(c)]]
    lines = {(frame.file, frame.line) for frame in source.stack[:1]}
    here = [c for c in found if _lines(c) & lines]
    # One that stands alone on another line is another one.
    yield from here or [c for c in found if is_combined(c) or not c.source.stack]


def sum_compiled_as(report: Report, flow: Flow, place: EquationPlace, number: int) -> Collective | None:
    """What became of a sum over devices: psum, or psum_scatter, of which TPUs' compiler may make an all-reduce."""
    equation, source = place.equation, flow.source(place)
    axes, type = equation.axes or (), equation.outputs[number].type
    whole = flow.type_of(At(place.jaxpr, equation.inputs[number])) or type
    scattered = compiled_as(report, "reduce-scatter", axes, type, source) if equation.primitive in SCATTERS else ()
    return next(chain(scattered, compiled_as(report, "all-reduce", axes, whole, source)), None)


def is_combined(collective: Collective) -> bool:
    """Whether the compiler has made it of several: its bytes are not those of one."""
    return len(collective.result_types) > 1 or bool(collective.parts)


def _types(collective: Collective) -> tuple[ArrayType, ...]:
    return tuple(part.type for part in collective.parts) or collective.result_types


def _lines(collective: Collective) -> set[tuple[str, int]]:
    places = [collective.source, *(part.source for part in collective.parts)]
    return {(place.stack[0].file, place.stack[0].line) for place in places if place.stack}


def compiled_collectives(report: Report, instructions: Iterable[Instruction]) -> tuple[Collective, ...]:
    """The collectives of the compiled program that come from these: of their kind, with as many elements.

    They are told by the numbers of the operations that they come from; without such, by their lines, else by names.
    """
    before, after = report.program.stage("hlo-spmd"), report.program.stage("hlo")
    found: dict[Collective, None] = {}
    if before is None or after is None:
        return ()
    for instruction in instructions:
        alike = [c for c in report.collectives if c.stage == "hlo" and _is_like(c, instruction)]
        tags = set(tags_in(before, instruction.span))
        tagged = [c for c in alike if tags & set(tags_in(after, c.span))]
        lines = _whole_stack(instruction.frames)
        here = [c for c in alike if lines and _whole_stack(c.source.stack) == lines]
        name = instruction.metadata.op_name if instruction.metadata is not None else None
        named = [c for c in alike if name and c.op_name == name]
        found |= dict.fromkeys(tagged or here or ([] if lines else named or alike))
    return tuple(found)


def _whole_stack(stack: tuple[Frame, ...]) -> list[tuple[str, int]]:
    """The lines of a whole stack: a helper's own line does not tell from where it was called."""
    return [(frame.file, frame.line) for frame in stack]


def _is_like(collective: Collective, instruction: Instruction) -> bool:
    if HLO_OPCODES.get(instruction.opcode) != collective.kind:
        return False
    try:
        wanted = {hlo_types.array_type(leaf).elements for leaf in hlo_types.leaves(instruction.type)}
    except ParseError:
        return False
    return bool(wanted & {each.elements for each in collective.result_types})


def saved_seconds(report: Report, now: Collective, instead: Kind) -> float | None:
    """The time that another kind of collective saves, with the same operand over the same groups."""
    machine = machine_of(report.program)
    if machine is None or now.estimate is None:
        return None
    then = estimate(replace(now, kind=instead), machine)
    return None if then is None else now.estimate.seconds - then.seconds
