"""The collectives out of the partitioner that compiled ones come from.

Most keep the numbers of their operations. Where the compiler lost these, as TPUs' combiner does, a twin has as many
elements in the same groups, and, of several, an operand from the same operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...parsers.record import Record
from ...parsers.source import Span
from ..catalog.spellings import BECOMES, COMBINED, KIND_OF, Kind
from ..dataflow.hlo import HloValue, hlo_flow
from ..ir.stage import ParsedStage
from ..ir.types import ArrayType
from ..report import Collective, CollectivePart, Pass
from ..units import known_sum
from .evidence import Evidence, confidence_of
from .numbers import tags_in

MAX_STEPS = 4
"""Instructions without numbers that are followed back to one that has some."""

Members = frozenset[tuple[int, ...]]


class Twin(Record, frozen=True):
    """A collective out of the partitioner; `near` are the numbers of the operations that its operand comes from.

    `serves` are those of the constraints and reshards that it is there for, `used_in` is the pass of what uses the
    moved value. `op_name` is an argument's name where an argument is moved, `dtype` that of what is moved.
    """

    kind: Kind
    numbers: tuple[int, ...]
    near: frozenset[int]
    serves: tuple[int, ...] = ()
    op_name: str | None = None
    name: str = ""
    used_in: Pass = "unknown"
    dtype: str = ""
    span: Span = Span(0, 0)


@dataclass(slots=True)
class Part:
    """A part of a compiled collective, and its twin, if it was found: by which evidence, with how many rivals.

    `alone` is whether the collective has no other part. Where nothing but the size was compared, the twin has no dtype.
    """

    of: Collective
    index: int
    type: ArrayType
    shape: Shape
    alone: bool
    twin: Twin | None = None
    evidence: Evidence | None = None
    rivals: int = 0

    @property
    def piece(self) -> CollectivePart | None:
        """The part as it was cut out of what the compiler concatenated; None where it is a result of its own."""
        return self.of.parts[self.index] if self.of.parts else None

    @property
    def span(self) -> Span:
        """The instruction that has its numbers."""
        return (None if self.piece is None else self.piece.span) or self.of.span

    @property
    def exact(self) -> bool:
        """True if its twin takes the place of no other."""
        return confidence_of(self.evidence, self.rivals) in ("exact", "name")


Shape = tuple[int | None, Members]
"""The elements of the larger side, and who takes part."""

Twins = Mapping[Shape, Sequence[Twin]]


def parts_of(stage: ParsedStage, found: Iterable[Collective], partitioned: Twins) -> list[Part]:
    """The parts of some collectives of a compiled stage, with their twins."""
    parts = [
        Part(each, index, type, shape=shape, alone=len(typed) == 1)
        for each, typed in ((each, typed_shapes_of(each)) for each in found)
        for index, (type, shape) in enumerate(typed)
    ]
    left = {shape: list(twins) for shape, twins in partitioned.items()}
    for evidence, fits in ORDER:
        for part in parts:
            if part.twin is None and (fitting := fits(stage, part, _fitting(part, left.get(part.shape, ())))):
                fitting.sort(key=lambda twin: twin.name != part.of.name)
                twin = _one_of(fitting, part.of.name)
                part.twin = replace(twin, dtype="") if evidence is Evidence.SHAPE else twin
                part.evidence, part.rivals = evidence, len(fitting) - 1
                left[part.shape].remove(fitting[0])
    every = [twin for twins in partitioned.values() for twin in twins]
    for part in parts:
        if part.twin is None:  # the compiler may do twice what the partitioner did once, or in blocks
            again = _same_numbers(stage, part, _fitting(part, every))
            if again:
                part.twin, part.evidence, part.rivals = again[0], Evidence.NUMBER, len(again) - 1
    return parts


def _one_of(fitting: Sequence[Twin], name: str) -> Twin:
    """The first of several; what it serves is known only if all of them serve the same, its pass also by its name."""
    first = fitting[0]
    if first.name != name and any(each.used_in != first.used_in for each in fitting):
        first = replace(first, used_in="unknown")
    return first if all(each.serves == fitting[0].serves for each in fitting) else replace(first, serves=())


def _same_numbers(stage: ParsedStage, part: Part, twins: list[Twin]) -> list[Twin]:
    numbers = set(tags_in(stage, part.span)) if twins else set()
    return [twin for twin in twins if numbers & set(twin.numbers)]


def _same_own_numbers(stage: ParsedStage, part: Part, twins: list[Twin]) -> list[Twin]:
    return _same_numbers(stage, part, twins) if part.alone or part.piece is not None else []


def _same_name(stage: ParsedStage, part: Part, twins: list[Twin]) -> list[Twin]:
    if part.piece is not None:  # it is brought into shape by an instruction with its name
        name = part.piece.op_name
        return [twin for twin in twins if name and twin.op_name == name]
    name = part.of.op_name if part.alone else None
    return [twin for twin in twins if name and twin.op_name == name and not (twin.numbers or twin.near)]


def _same_operand(stage: ParsedStage, part: Part, twins: list[Twin]) -> list[Twin]:
    near = _near(stage, part.of, part.index) if twins and part.piece is None else frozenset()
    return [twin for twin in twins if twin.near & near]


def _any(stage: ParsedStage, part: Part, twins: list[Twin]) -> list[Twin]:
    return twins


ORDER = (
    (Evidence.NUMBER, _same_own_numbers),
    (Evidence.NAME_AND_LINE, _same_name),
    (Evidence.OPERAND, _same_operand),
    (Evidence.NUMBER, _same_numbers),
    (Evidence.SHAPE, _any),
)
"""That of `Evidence`. The numbers of a combined collective are of any of its parts: operands tell these apart first."""


def _fitting(part: Part, twins: Iterable[Twin]) -> list[Twin]:
    return [twin for twin in twins if twin.kind == part.of.kind or (twin.kind, part.of.kind) in BECOMES]


def twins_in(
    stage: ParsedStage,
    found: Iterable[Collective],
    served: Mapping[str, tuple[int, ...]],
    used_in: Mapping[tuple[str, str], Pass],
) -> Twins:
    """The collectives of the stage out of the partitioner, by their shapes; `served` are requests by their names.

    `used_in` are the passes of what uses the moved values, by computation and name.
    """
    twins: dict[Shape, list[Twin]] = {}
    for each in found:
        numbers, serves = tags_in(stage, each.span), served.get(each.name, ())
        for index, (type, shape) in enumerate(typed_shapes_of(each)):
            used = used_in.get((each.computation, each.name), "unknown")
            near = _near(stage, each, index)
            twin = Twin(each.kind, numbers, near, serves, each.op_name, each.name, used, type.dtype, each.span)
            twins.setdefault(shape, []).append(twin)
    return twins


def typed_shapes_of(collective: Collective) -> list[tuple[ArrayType, Shape]]:
    """The types and shapes of the larger sides of its parts: those of the smaller ones change with the kind."""
    types = collective.operand_types if KIND_OF[collective.kind].sides == "scattered" else collective.result_types
    types = collective.part_types if collective.parts else types
    members = frozenset(collective.pairs or (tuple(sorted(group)) for group in collective.groups))
    elements = [type.elements for type in types]
    if collective.kind in COMBINED:
        return [(type, (each, members)) for type, each in zip(types, elements, strict=True)]
    return [(type, (known_sum(elements), members)) for type in types[:1]]


def _near(stage: ParsedStage, collective: Collective, index: int) -> frozenset[int]:
    flow = hlo_flow(stage)
    made = None if stage.hlo is None else stage.hlo.instruction(collective.computation, collective.name)
    if flow is None or made is None:
        return frozenset()
    value = flow.operand(HloValue(made), index)
    for _ in range(MAX_STEPS):
        if value is None:
            break
        behind = flow.origin(value) or value  # of a fusion with several results, the one that makes this one
        numbers = tags_in(stage, behind.instruction.span) or tags_in(stage, value.instruction.span)
        if numbers:
            return frozenset(numbers)
        value = flow.operand(behind, 0)
    return frozenset()
