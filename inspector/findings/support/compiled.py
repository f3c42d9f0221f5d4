"""The collectives of the compiled program: what they were made of, what they are there for, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile

from ....parsers.errors import ParseError
from ....parsers.hlo import Instruction
from ....parsers.mlir.types import TensorType
from ....parsers.sharding_syntax.mesh import AxisRef
from ....parsers.source import Frame
from ...catalog.spellings import HLO_OPCODES, primitives_of
from ...cost.collectives import estimate
from ...cost.places import machine_of
from ...ir.derived import derived
from ...ir.jaxpr_text import EquationPlace
from ...ir.program import Program
from ...ir.types import ArrayType, array_type, leaves
from ...links.operation_ids import tags_in
from ...report import (
    WRITTEN,
    BoundaryOrigin,
    Certainty,
    Collective,
    CollectiveCause,
    FindingPlace,
    Kind,
    Report,
    SourcePosition,
    ValueName,
)
from ...shardings.collective_causes import causes_of, is_inserted
from ...shardings.dataflow import Dataflow, Node
from ...shardings.explained import wording_of
from ..rule import Saving
from .detours import array_sharding
from .jaxpr_flow import At, Flow

GATHERS = primitives_of("all-gather")

EXCHANGES = primitives_of("all-to-all")

SUMS = ("psum", "psum_invariant", "psum2", "unreduced_psum")

SCATTERS = ("reduce_scatter",)
"""Primitives of which each device gets a block of the sum."""


def is_compiled(report: Report) -> bool:
    """Whether the compiled program is known."""
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
    """How sure it is what a program does of which this is the compiled collective."""
    return "likely" if compiled is None else "proved"


def compiled_to(compiled: Collective | None, then: str = "") -> tuple[str, str]:
    """What something was compiled to, as evidence, and what comes behind it."""
    if compiled is None:
        return "compiled to", "not compiled"
    by = "compiled to" if compiled.stage == "hlo" else "partitioned to"
    return by, f"{compiled.kind} {compiled.name}{then}"


def on_another_target(report: Report, words: str) -> tuple[tuple[str, str], ...]:
    """What another target's compiler may do, as evidence where this one is the CPU's."""
    return (("target", words),) if platform_of(report) == "cpu" else ()


def platform_of(report: Report) -> str:
    """The platform of the target; empty where nothing was run."""
    return "" if report.capture.subject is None else report.capture.subject.platform


def saving(*collectives: Collective | None, times: int | None = 1, combined: bool = True) -> Saving:
    """What it saves to run these so many times less, as often as they run where `times` is None.

    Not known of those that were made of several unless `combined`.
    """
    amounts: list[tuple[int | None, float | None]] = []
    for each in collectives:
        count = None if each is None else each.executions if times is None else times
        if each is None or count is None or (is_combined(each) and not combined):
            return Saving()
        seconds = None if each.estimate is None else each.estimate.seconds * count
        amounts.append((None if each.wire_bytes is None else each.wire_bytes * count, seconds))
    sizes, seconds_of = [size for size, _ in amounts], [seconds for _, seconds in amounts]
    return Saving(
        None if None in sizes else sum(size or 0 for size in sizes),
        None if None in seconds_of else sum(seconds or 0 for seconds in seconds_of),
    )


def compiled_as(
    report: Report, kind: Kind, axes: Iterable[str], type: ArrayType, source: SourcePosition
) -> Collective | None:
    """The collective of the compiled program of that kind, axes and shape, from that line if any says so.

    A compiler may widen element types, and make one collective of several, with the line of one of them. Where none has
    that shape, those that have as many elements: a TPU's compiler keeps the blocks of a gather apart.
    """
    wanted, alike = frozenset(map(AxisRef, axes)), _alike(report, kind)
    found = alike.get((wanted, type.shape)) or alike.get((wanted, type.elements))
    if found is None:
        return None
    here = found.by_line.get((source.stack[0].file, source.stack[0].line)) if source.stack else None
    return here or found.anywhere


@dataclass(slots=True)
class _Alike:
    """Of the collectives of one kind, axes and size the first on each line, and the first that may be of any line.

    One that stands alone on another line is another one.
    """

    by_line: dict[tuple[str, int], Collective] = field(default_factory=dict)
    anywhere: Collective | None = None


AlikeBySize = dict[tuple[frozenset[AxisRef], tuple[int, ...] | int | None], _Alike]
"""By axes and shape, and by axes and number of elements."""


def _alike(report: Report, kind: Kind) -> AlikeBySize:
    kept = _alike_of(report.program)
    if kind not in kept or kept[kind][0] is not report.collectives:
        found: AlikeBySize = {}
        for one in in_hlo(report, kind):
            if one.axes is None:
                continue
            for size in dict.fromkeys(_sizes(one)):
                alike = found.setdefault((frozenset(one.axes), size), _Alike())
                for line in _lines(one):
                    alike.by_line.setdefault(line, one)
                if alike.anywhere is None and (is_combined(one) or not one.source.stack):
                    alike.anywhere = one
        kept[kind] = report.collectives, found
    return kept[kind][1]


def _sizes(one: Collective) -> Iterator[tuple[int, ...] | int | None]:
    """Its shapes and numbers of elements; CPUs exchange the parts of an array one by one."""
    for type in _types(one):
        yield from (type.shape, type.elements)
    if one.kind == "all-to-all":
        yield sum(type.elements or 0 for type in _types(one))


@derived
def _alike_of(program: Program) -> dict[Kind, tuple[tuple[Collective, ...], AlikeBySize]]:
    """Of each kind, with the collectives that it was made of."""
    return {}


def sum_compiled_as(report: Report, flow: Flow, place: EquationPlace, number: int) -> Collective | None:
    """What became of a sum over devices: psum, or psum_scatter, of which TPUs' compiler may make an all-reduce."""
    equation, source = place.equation, flow.source(place)
    axes, type = equation.axes or (), equation.outputs[number].type
    whole = flow.type_of(At(place.jaxpr, equation.inputs[number])) or type
    is_scatter = equation.primitive in SCATTERS
    scattered = compiled_as(report, "reduce-scatter", axes, type.array, source) if is_scatter else None
    return scattered or compiled_as(report, "all-reduce", axes, whole.array, source)


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
    before = report.program.stage("hlo-spmd")
    after = report.program.stage("hlo") or before
    found: dict[Collective, None] = {}
    if before is None or after is None:
        return ()
    for instruction in instructions:
        alike = [c for c in in_hlo(report) if _is_like(c, instruction)]
        tags = set(tags_in(before, instruction.span))
        tagged = [c for c in alike if tags & set(tags_in(after, c.span))]
        lines = _whole_stack(instruction.frames)
        here = [c for c in alike if lines and _whole_stack(c.source.stack) == lines]
        named = [c for c in alike if instruction.op_name and c.op_name == instruction.op_name]
        found |= dict.fromkeys(tagged or here or ([] if lines else named or alike))
    return tuple(found)


def _whole_stack(stack: tuple[Frame, ...]) -> list[tuple[str, int]]:
    """The lines of a whole stack: a helper's own line does not tell from where it was called."""
    return [(frame.file, frame.line) for frame in stack]


def _is_like(collective: Collective, instruction: Instruction) -> bool:
    if HLO_OPCODES.get(instruction.opcode) != collective.kind:
        return False
    try:
        wanted = {array_type(leaf).elements for leaf in leaves(instruction.type)}
    except ParseError:
        return False
    return bool(wanted & {each.elements for each in collective.result_types})


def saved_seconds(report: Report, now: Collective | None, instead: Kind, size: int | None = None) -> float | None:
    """The time that another kind of collective saves over the same groups, with the same operand or one of a `size`."""
    machine = machine_of(report.program)
    if machine is None or now is None or now.estimate is None:
        return None
    other = replace(now, kind=instead)
    then = estimate(other if size is None else replace(other, bytes_in=size, bytes_out=size), machine)
    return None if then is None else now.estimate.seconds - then.seconds


def inserted_for(
    report: Report, flow: Dataflow, nodes: Iterable[tuple[Node, int]], kind: Kind, axis: str, source: Node | None = None
) -> Collective | None:
    """The collective of that kind along an axis by the partitioner that gives one of some values, or stands for it.

    One with the shape of a value's part on each device; of several, the one that moves their `source`, or the first of
    them, or else the one whose stack has most in common with that of a value: a helper's line is that of all its calls.
    """
    wanted = [node for node, _ in nodes]
    shapes = {shape for node in wanted if (shape := local_shape(flow, node)) is not None}
    moved = (c for c in in_hlo(report, kind) if c.origin not in WRITTEN)
    found = [c for c in moved if axis in {each.name for each in c.axes or ()}]
    alike = [c for c in found if shapes & {type.shape for type in c.result_types}]
    several = alike or found
    if len(several) > 1 and source is not None:
        names = [wording_of(flow).name(node) for node in (source, *wanted)]
        firsts = {
            c: min((names.index(each) for each in _moved_by(report, c) if each in names), default=None) for c in several
        }
        known = [(first, number, c) for number, (c, first) in enumerate(firsts.items()) if first is not None]
        if known:
            return min(known)[2]
    stacks = {wording_of(flow).places.operation(node.row)[1].stack for node in wanted if node.row >= 0}
    shared = {c: max((_in_common(c.source.stack, stack) for stack in stacks), default=0) for c in found}
    nearest = max(several, key=lambda c: shared[c], default=None)
    here = max(found, key=lambda c: shared[c], default=None)
    if here is not None and nearest is not None and shared[here] == len(here.source.stack) > shared[nearest]:
        return here  # one of several steps: what is gathered along another dimension first has another shape
    return nearest if alike or (nearest is not None and shared[nearest]) else None


def _moved_by(report: Report, collective: Collective) -> Iterator[ValueName]:
    """The values of the propagated program that a collective moves."""
    causes = causes_of(report.program, collective)
    yield from (each.moved.value for each in causes if each.moved is not None)


def _in_common(one: tuple[Frame, ...], other: tuple[Frame, ...]) -> int:
    """How many lines two stacks have in common, from the innermost on."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: (pair[0].file, pair[0].line) == (pair[1].file, pair[1].line), pairs))


def local_shape(flow: Dataflow, node: Node) -> tuple[int, ...] | None:
    """The shape of one device's part of a result."""
    types = flow.rows[node.row].types if node.kind == "result" else ()
    type = types[node.number] if node.number < len(types) else None
    if not isinstance(type, TensorType) or None in type.dims:
        return None
    shape = tuple(size for size in type.dims if size is not None)
    sharding = array_sharding(flow, node)
    try:
        return shape if sharding is None else sharding.local_shape(shape)
    except ValueError:
        return shape  # on one device alone


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
    """What a collective communicates, as one would say it: without the numbers of the propagated program."""
    return "" if cause.moved is None else f"dimension {cause.moved.dim} of {cause.moved.made_by or cause.moved.value}"
