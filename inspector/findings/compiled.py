"""The collectives of the compiled program: where they are, what they come from, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...parsers.hlo import HloModule, Instruction
from ...parsers.hlo.types import TupleShape
from ..catalog.spellings import HLO_OPCODES, primitives_of
from ..collectives.context import context_of
from ..collectives.stage import parts_in
from ..correspondence.collectives import CompiledCollectives, is_combined
from ..correspondence.numbers import numbers_of
from ..dataflow.hlo import HloValue
from ..ir.derived import derived
from ..ir.jaxpr_text import EquationPlace
from ..ir.program import Program
from ..ir.types import ArrayType
from ..report import BoundaryOrigin, Certainty, Collective, CollectiveCause, FindingPlace, Kind, Report
from ..shardings.collective_causes import causes_of, is_inserted
from ..units import known_sum
from .equations import At, Flow
from .rule import Saving

GATHERS = primitives_of("all-gather")

SUMS = ("psum", "psum_invariant", "psum2", "unreduced_psum")

REDUCTIONS = primitives_of("all-reduce", "reduce-scatter")

SCATTERS = primitives_of("reduce-scatter")
"""Primitives of which each device gets a block of the sum."""


def is_compiled(report: Report) -> bool:
    """Return whether there is a compiled program."""
    return report.capture.stage("hlo") is not None


def in_hlo(report: Report, kind: Kind | None = None) -> list[Collective]:
    """The collectives of the compiled program, of one kind or of all; of the partitioned one if the backend refused."""
    stage = "hlo" if is_compiled(report) else "hlo-spmd"
    return [each for each in report.collectives if each.stage == stage and kind in (None, each.kind)]


def place_in_hlo(collective: Collective, of: CollectiveCause | None = None) -> FindingPlace:
    """A collective as what a finding is about; one without a line by what is known `of` it."""
    if of is not None and collective.source.frame is None and isinstance(of.operation, BoundaryOrigin):
        return FindingPlace(str(of.operation), of.place, collective.stage, collective.span)
    return FindingPlace(collective.name, collective.source, collective.stage, collective.span)


def certainty(compiled: Collective | None) -> Certainty:
    """Return how certain a statement about the program is, given its compiled collective."""
    return "likely" if compiled is None else "proved"


def compiled_to(compiled: Collective | None, then: str = "") -> tuple[str, str]:
    """Return what something was compiled to, as evidence, and the uses behind it."""
    if compiled is None:
        return "compiled to", "not compiled"
    by = "compiled to" if compiled.stage == "hlo" else "partitioned to"
    return by, f"{compiled.kind} {compiled.name}{then}"


def on_another_target(report: Report) -> tuple[tuple[str, str], ...]:
    """Return that another target's compiler may fix it, as evidence where this target is the CPU."""
    words = "other compilers may fix this: compare --target tpu:v5e or gpu:h100"
    return (("target", words),) if platform_of(report) == "cpu" else ()


def platform_of(report: Report) -> str:
    """The platform of the target; empty where nothing was run."""
    return "" if report.capture.subject is None else report.capture.subject.platform


def at_most(*collectives: Collective | None) -> Saving:
    """The cost of some collectives in one run: a change of them saves no more, and a trial says how much."""
    known = [each for each in collectives if each is not None]
    return Saving(
        known_sum(each.step_bytes for each in known) or None, known_sum(each.step_seconds for each in known) or None
    )


# What they come from


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
    return tuple(each for each, parts in found.items() if len(parts) == len(each.part_types))


def results_of(module: HloModule, collective: Collective) -> list[tuple[HloValue, ArrayType]]:
    """The values that a collective gives, with their types; none of one that a module does not have.

    Of what the compiler concatenated these are the parts, in their shapes.
    """
    cut = [(module.instruction_at(part.span.start), part.type) for part in collective.parts if part.span is not None]
    if cut:
        return [(HloValue(piece), type) for piece, type in cut if piece is not None]
    instruction, types = module.instruction(collective.computation, collective.name), collective.result_types
    if instruction is None:
        return []
    # The first half of an asynchronous one has the tuple that its other half gives.
    is_whole = not instruction.opcode.endswith("-start") and isinstance(instruction.type, TupleShape)
    paths = [(number,) if len(types) > 1 or is_whole else () for number in range(len(types))]
    return [(HloValue(instruction, path), type) for path, type in zip(paths, types, strict=True)]


# What the partitioner inserted


def inserted_collectives(report: Report) -> Iterator[tuple[Collective, tuple[CollectiveCause, ...]]]:
    """The collectives of the compiled program that the partitioner inserted, each with what it is there for."""
    for collective in in_hlo(report):
        if collective.origin == "partitioner":
            yield collective, causes_of(report.program, collective)


def moved_by_the_partitioner(report: Report) -> Iterator[tuple[Collective, CollectiveCause]]:
    """The same, and those that were merged with what the user wrote, once for each operation that they are there for.

    Of those that were not merged, for the likeliest one.
    """
    for collective in in_hlo(report):
        if collective.origin != "unknown" and is_inserted(collective):
            causes = causes_of(report.program, collective)
            for cause in causes if is_combined(collective) else causes[:1]:
                yield collective, cause


def dimension_of(cause: CollectiveCause) -> str:
    """Return the communicated dimension in words, without the numbers of the propagated program."""
    if cause.moved is None:
        return ""
    made_by = cause.moved.made_by
    return f"dimension {cause.moved.dim} of {cause.moved.value if made_by is None else f'the {made_by} result'}"
