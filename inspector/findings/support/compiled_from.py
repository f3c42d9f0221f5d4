"""The compiled collectives that come from an equation, or from instructions before the compiler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from ....parsers.errors import ParseError
from ....parsers.hlo import Instruction
from ....parsers.hlo.types import leaves
from ....parsers.sharding_syntax.mesh import AxisRef
from ....parsers.source import Frame
from ...catalog.spellings import HLO_OPCODES
from ...correspondence.numbers import tags_in
from ...ir.derived import derived
from ...ir.jaxpr_text import EquationPlace
from ...ir.program import Program
from ...ir.types import ArrayType, array_type
from ...report import Collective, Kind, Report, SourcePosition
from .compiled import in_hlo, is_combined
from .jaxpr_flow import At, Flow

SCATTERS = ("reduce_scatter",)
"""Primitives of which each device gets a block of the sum."""


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
    """For collectives of one kind, axes and size: the first on each line, and the first of any line.

    One that stands alone on another line is another one.
    """

    by_line: dict[tuple[str, int], Collective] = field(default_factory=dict)
    anywhere: Collective | None = None


AlikeBySize = dict[tuple[frozenset[AxisRef], tuple[int, ...] | int | None], _Alike]
"""Alike collectives by axes and shape, and by axes and number of elements."""


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
    """Alike collectives of each kind, with the collectives that it was made of."""
    return {}


def sum_compiled_as(report: Report, flow: Flow, place: EquationPlace, number: int) -> Collective | None:
    """Return the compiled form of a sum over devices: a psum, or a psum_scatter that a TPU compiler all-reduces."""
    equation, source = place.equation, flow.source(place)
    axes, type = equation.axes or (), equation.outputs[number].type
    whole = flow.type_of(At(place.jaxpr, equation.inputs[number])) or type
    is_scatter = equation.primitive in SCATTERS
    scattered = compiled_as(report, "reduce-scatter", axes, type.array, source) if is_scatter else None
    return scattered or compiled_as(report, "all-reduce", axes, whole.array, source)


def _types(collective: Collective) -> tuple[ArrayType, ...]:
    return tuple(part.type for part in collective.parts) or collective.result_types


def _lines(collective: Collective) -> set[tuple[str, int]]:
    places = [collective.source, *(part.source for part in collective.parts)]
    return {(place.stack[0].file, place.stack[0].line) for place in places if place.stack}


def compiled_collectives(report: Report, instructions: Iterable[Instruction]) -> Mapping[Collective, frozenset[int]]:
    """The collectives of the compiled program that come from these, and the numbers of their parts that do.

    They are of their kind, with as many elements, and are recognized by the numbers of the operations that they come
    from; without such, by lines, else by names. A compiler may have combined them with others.
    """
    before = report.program.stage("hlo-spmd")
    after = report.program.stage("hlo") or before
    found: dict[Collective, set[int]] = {}
    if before is None or after is None:
        return {}
    for instruction in instructions:
        alike = [c for c in in_hlo(report) if _is_like(c, instruction)]
        tags = set(tags_in(before, instruction.span))
        tagged = [c for c in alike if tags & set(tags_in(after, c.span))]
        lines = _whole_stack(instruction.frames)
        here = [c for c in alike if lines and _whole_stack(c.source.stack) == lines]
        named = [c for c in alike if instruction.op_name and c.op_name == instruction.op_name]
        sizes = _elements(instruction)
        for each in tagged or here or ([] if lines else named or [c for c in alike if not c.source.stack] or alike):
            parts = found.setdefault(each, set())
            for size in sizes:
                free = (n for n, type in enumerate(each.result_types) if n not in parts and type.elements == size)
                parts.update(islice(free, 1))
    return {each: frozenset(parts) for each, parts in found.items()}


def wholly_compiled(report: Report, instructions: Iterable[Instruction]) -> tuple[Collective, ...]:
    """The collectives of the compiled program of which all parts come from these."""
    found = compiled_collectives(report, instructions)
    return tuple(each for each, parts in found.items() if len(parts) == len(each.result_types))


def _whole_stack(stack: tuple[Frame, ...]) -> list[tuple[str, int]]:
    """The lines of a whole stack: a helper's own line does not tell from where it was called."""
    return [(frame.file, frame.line) for frame in stack]


def _is_like(collective: Collective, instruction: Instruction) -> bool:
    is_kind = HLO_OPCODES.get(instruction.opcode) == collective.kind
    return is_kind and not {size for size in _sizes(collective) if isinstance(size, int)}.isdisjoint(
        _elements(instruction)
    )


def _elements(instruction: Instruction) -> list[int | None]:
    try:
        return [array_type(leaf).elements for leaf in leaves(instruction.type)]
    except ParseError:
        return []
