"""The compiled collectives that come from an equation, or from instructions before the compiler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....parsers.hlo import Instruction
from ...catalog.spellings import HLO_OPCODES
from ...collectives.context import context_of
from ...collectives.stage import parts_in
from ...correspondence.collectives import CompiledCollectives
from ...correspondence.numbers import numbers_of
from ...ir.derived import derived
from ...ir.jaxpr_text import EquationPlace
from ...ir.program import Program
from ...ir.types import ArrayType
from ...report import Collective, Kind, Report
from .compiled import in_hlo
from .jaxpr_flow import At, Flow

SCATTERS = ("reduce_scatter",)
"""Primitives of which each device gets a block of the sum."""


def _compiled(report: Report) -> CompiledCollectives | None:
    stage = report.program.stage("hlo") or report.program.stage("hlo-spmd")
    kept = _kept(report.program)
    if stage is not None and (not kept or kept[0][0] is not report.collectives):
        parts = parts_in(stage, context_of(report.program))
        kept[:] = [(report.collectives, CompiledCollectives(stage, in_hlo(report), parts))]
    return kept[0][1] if kept else None


@derived
def _kept(program: Program) -> list[tuple[tuple[Collective, ...], CompiledCollectives]]:
    """Index of the last report of a program, with its collectives."""
    return []


def compiled_as(report: Report, flow: Flow, place: EquationPlace, kind: Kind, type: ArrayType) -> Collective | None:
    """The collective of the compiled program of that kind and shape that comes from an equation."""
    compiled, axes = _compiled(report), place.equation.axes or ()
    if compiled is None:
        return None
    numbers = frozenset(numbers_of(report.program, flow.text, place))
    return next(iter(compiled.of_equation(kind, axes, type, numbers, flow.source(place)).found), None)


def sum_compiled_as(report: Report, flow: Flow, place: EquationPlace, number: int) -> Collective | None:
    """Return the compiled form of a sum over devices: a psum, or a psum_scatter that a TPU compiler all-reduces."""
    equation = place.equation
    type = equation.outputs[number].type
    whole = flow.type_of(At(place.jaxpr, equation.inputs[number])) or type
    is_scatter = equation.primitive in SCATTERS
    scattered = compiled_as(report, flow, place, "reduce-scatter", type.array) if is_scatter else None
    return scattered or compiled_as(report, flow, place, "all-reduce", whole.array)


def compiled_collectives(report: Report, instructions: Iterable[Instruction]) -> Mapping[Collective, frozenset[int]]:
    """The collectives of the compiled program that come from partitioned instructions, and the numbers of their parts.

    They are of their kind. A compiler may have combined them with others.
    """
    compiled = _compiled(report)
    kinds = {each.name: kind for each in instructions if (kind := HLO_OPCODES.get(each.opcode)) is not None}
    return {} if compiled is None else compiled.of_instructions(kinds)


def wholly_compiled(report: Report, instructions: Iterable[Instruction]) -> tuple[Collective, ...]:
    """The collectives of the compiled program of which all parts come from these."""
    found = compiled_collectives(report, instructions)
    return tuple(each for each, parts in found.items() if len(parts) == len(each.result_types))
