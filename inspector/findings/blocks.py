"""Collectives of whose results every device seems to use a block alone: which block is enough, a trial decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from ...parsers.hlo import Instruction
from ...parsers.record import Record
from ..dataflow.graph import Output
from ..dataflow.hlo import HloFlow, HloUse, HloValue, hlo_flow
from ..dataflow.integers import PartitionNumbers, partition_numbers
from ..dataflow.meaning import ELEMENTWISE, POINTWISE, SAME, Does, does
from ..dataflow.walks import Ends, forward
from ..ir.array_sharding import ArraySharding
from ..ir.derived import derived
from ..ir.jaxpr_text import EquationPlace
from ..ir.name_scopes import Leaf, counterparts
from ..ir.stage import ParsedStage
from ..ir.types import ArrayType, array_type
from ..report import Certainty, Collective, Fix, Kind, Report, ShardedValue, SourcePosition
from ..shardings.collective_causes import causes_of
from .compiled import in_hlo, results_of
from .equations import At, Flow, Use, axis_sizes, devices_along, is_constant, numbers_of, operands_over
from .fixes.edits import Edits, together, without_calls
from .fixes.in_specs import SLICES

MAX_DIMENSIONS = 3
"""Dimensions along which a block is tried."""

IN_BLOCKS = ELEMENTWISE | Does.RESHAPE | Does.REPEAT | Does.REDUCE | Does.CONTRACT
"""Operations of which a block of the result may need no more than a block of the operand."""

MAX_PARTITIONS = 1 << 12

THROUGH = IN_BLOCKS | Does.LOOKUP | Does.PLACE

USED_IN_BLOCKS = Does.REDUCE | Does.SLICE
"""Classes of operations that a block of the sum would do for: a norm needs one more sum, of a single number."""


# In the jaxpr


class OwnBlock(Record, frozen=True):
    """Each device along `axes` takes one block of what a value becomes, at a place that it computes from its position.

    `dims` are the dimensions of the value that may be split in as many blocks, the likeliest first. Where only
    elementwise operations are in between, it is known which one.
    """

    axes: tuple[str, ...]
    dims: tuple[int, ...]
    slices: tuple[EquationPlace, ...]
    is_known: bool

    @property
    def certainty(self) -> Certainty:
        """Certainty that each device needs this block alone."""
        return "proved" if self.is_known else "likely"

    def evidence(self, parts: int | None = None) -> tuple[str, str]:
        """Return what is kept, as evidence; with the number of parts where it matters."""
        of = "" if parts is None else f" of {parts}"
        return "kept", f"block {' × '.join(self.axes)}{of}, computed for each device"


def own_block(report: Report, flow: Flow, place: EquationPlace, output: int) -> OwnBlock | None:
    """Return the block that slices take, if they are all that becomes of a collective's result, by block-wise steps."""
    axes, sizes = place.equation.axes or (), axis_sizes(report, flow, place)
    result = place.equation.outputs[output]
    reach = forward(flow, [At(place.jaxpr, result.name)], IN_BLOCKS)
    taken = {_taken(flow, use, axes, sizes) for use in reach.ends} if reach.is_all else {None}
    if None in taken or len({along for along, _ in filter(None, taken)}) != 1:
        return None
    along, first = next(filter(None, taken))
    dims = tuple(_dimensions(result.type.array, devices_along(along, sizes) or 1, first))
    is_known = all(flow.does(use) in ELEMENTWISE for use in reach.steps)
    dims = dims[:1] if is_known else dims
    return OwnBlock(along, dims, tuple(use.place for use in reach.ends), is_known) if dims else None


def without_slices(report: Report, flow: Flow, block: OwnBlock, change: str, edits: Edits) -> Fix:
    """A change that gives each device its own block, so that the slices are left out."""
    places = [flow.source(place) for place in block.slices]
    lines = sorted({place.text(report.script) for place in places} - {""})
    where = f" of {', '.join(lines)}" if lines else ""
    left_out = without_calls(report.program, places, SLICES)
    return Fix(f"{change} without the slice{where}", together(edits, left_out))


def _dimensions(type: ArrayType, parts: int, first: int) -> Iterator[int]:
    """The dimensions that may be split in so many parts, the `first` one first."""
    shape = type.shape or ()
    fitting = sorted((dim for dim, size in enumerate(shape) if size % parts == 0), key=lambda dim: dim != first)
    yield from islice(fitting, MAX_DIMENSIONS)


def _taken(flow: Flow, use: Use, axes: Sequence[str], sizes: Mapping[str, int]) -> tuple[tuple[str, ...], int] | None:
    """The axes along which devices slice different parts, as many as there are devices, and the dimension."""
    equation, position = use.place.equation, use.position
    type = flow.type_of(At(use.place.jaxpr, equation.inputs[position], use.calls))
    shape, taken = (type.array.shape if type else None) or (), numbers_of(equation, "slice_sizes")
    smaller = [dim for dim, (have, take) in enumerate(zip(shape, taken, strict=False)) if take < have]
    takes = does(equation.primitive) in Does.SLICE | Does.LOOKUP
    if not takes or position != 0 or len(smaller) != 1 or type is None:
        return None
    start = 1 + (smaller[0] if equation.primitive == "dynamic_slice" else 0)
    held = {each.axis for value in operands_over(flow, use.place)[start : start + 1] for each in value}
    along, part = tuple(axis for axis in axes if axis in held), equation.outputs[0].type.array.elements
    is_split = part is not None and type.array.elements == part * (devices_along(along, sizes) or 0)
    is_own = held == {*along} and is_split and is_constant(flow, At(use.place.jaxpr, equation.inputs[start], use.calls))
    return (along, smaller[0]) if is_own else None


# In the compiled program


class UsedBlocks(Record, frozen=True):
    """A collective, and those of its results of which each device uses a block alone, taken by the `slices`.

    `is_of_others` is true of a gather from which devices take what another one held.
    """

    collective: Collective
    types: tuple[ArrayType, ...]
    slices: tuple[tuple[Instruction, ...], ...]
    is_of_others: bool = False

    @property
    def sources(self) -> tuple[SourcePosition, ...]:
        """The line of the first slice of each result, else that of the collective."""
        stacks = (next((each.frames for each in slices if each.frames), ()) for slices in self.slices)
        return tuple(SourcePosition.exact(stack) if stack else self.collective.source for stack in stacks)


class _Slices:
    """The slices that are all that becomes of a stage's values, at places that partitions compute from their numbers.

    One of None is for any other use.
    """

    def __init__(self, flow: HloFlow, numbers: PartitionNumbers) -> None:
        self._flow, self._numbers = flow, numbers
        self._ends = Ends(flow, THROUGH, self._described, decisive=(None,))

    def of(self, value: HloValue) -> frozenset[HloUse | None]:
        return self._ends.of(value)

    def starts(self, use: HloUse) -> tuple[tuple[int, ...], ...] | None:
        """Return the start of each partition's slice, by sharded dimension; None where that is not known."""
        found = []
        operand = next(iter(use.instruction.operand_types), None)
        before, after = (
            () if each is None else array_type(each).shape or () for each in (operand, use.instruction.type)
        )
        for dim, (whole, size) in enumerate(zip(before, after, strict=False)):
            if whole == size:
                continue
            numbers = self._start(use, dim)
            if numbers is None:
                return None
            found.append(numbers)
        return tuple(found)

    def _start(self, use: HloUse, dim: int) -> tuple[int, ...] | None:
        start = self._flow.operand(use.result, 1 + dim)
        return None if start is None else self._numbers.scalar(start)

    def is_of_others(self, use: HloUse, gather: Collective) -> bool:
        """Return whether a slice of what was gathered begins in another member's part, along that dimension."""
        parts, wholes = ([each.shape or () for each in types] for types in (gather.operand_types, gather.result_types))
        taken = array_type(use.instruction.type).shape if use.instruction.type is not None else None
        operand = next(iter(use.instruction.operand_types), None)
        shape = None if operand is None else array_type(operand).shape
        if len(parts) != 1 or len(wholes) != 1 or shape != wholes[0] or taken is None:
            return False
        for dim, (part, whole, size) in enumerate(zip(parts[0], wholes[0], taken, strict=False)):
            if part < whole and size < whole:
                numbers = self._start(use, dim)
                members = ((place, member) for group in gather.groups for place, member in enumerate(group))
                return numbers is not None and any(numbers[member] // part != place for place, member in members)
        return False

    def _described(self, use: HloUse | Output | None) -> list[HloUse | None]:
        is_slice = isinstance(use, HloUse) and use.instruction.opcode == "dynamic-slice" and use.position == 0
        return [use] if isinstance(use, HloUse) and is_slice and self.starts(use) else [None]


@derived
def _slices(stage: ParsedStage) -> _Slices | None:
    flow, partitions = hlo_flow(stage), stage.module.devices if stage.module is not None else 0
    numbers = partition_numbers(stage, partitions)
    is_small = 1 < partitions <= MAX_PARTITIONS
    return _Slices(flow, numbers) if flow is not None and numbers is not None and is_small else None


def used_blocks(stage: ParsedStage, collective: Collective) -> UsedBlocks | None:
    """The results of a collective that are only sliced, where members of a group take different blocks."""
    slices, found, of_others = _slices(stage), {}, False
    if slices is None or stage.hlo is None:
        return None
    for value, type in results_of(stage.hlo, collective):
        uses = slices.of(value)
        known = [each for each in uses if each is not None]
        if known and len(known) == len(uses) and all(_differ(slices.starts(each), collective) for each in known):
            found[value] = type, tuple(sorted({each.instruction for each in known}, key=lambda each: each.start))
            of_others |= collective.kind == "all-gather" and any(
                slices.is_of_others(each, collective) for each in known
            )
    types, taken = zip(*found.values(), strict=True) if found else ((), ())
    return UsedBlocks(collective, types, taken, of_others) if found else None


def used_in_blocks(report: Report, kind: Kind) -> Iterator[UsedBlocks]:
    """The compiled collectives of a kind that have results of which each device uses a block alone."""
    for collective in in_hlo(report, kind):
        stage = report.program.stage(collective.stage)
        if stage is not None and collective.fused_form is None and (used := used_blocks(stage, collective)):
            yield used


def gathers_in_blocks(report: Report) -> Iterator[UsedBlocks]:
    """The same of all-gathers, but for those for which an operation works along the gathered dimension."""
    for each in used_in_blocks(report, "all-gather"):
        if not any(cause.effect == "move" for cause in causes_of(report.program, each.collective)):
            yield each


def listed(report: Report, group: Iterable[UsedBlocks]) -> Iterator[tuple[str, str]]:
    """Return the values as evidence: one line per place, the largest first."""
    counts: dict[tuple[str, ArrayType], int] = {}
    for each in group:
        for type, source in zip(each.types, each.sources, strict=True):
            key = source.text(report.script) or "no line known", type
            counts[key] = counts.get(key, 0) + (each.collective.executions or 1)
    lines: dict[str, list[str]] = {}
    for (where, type), count in sorted(counts.items(), key=lambda item: -(item[0][1].bytes or 0)):
        lines.setdefault(where, []).append(f"{count} × {type}, of which each device slices a block")
    yield from ((where, "; ".join(texts)) for where, texts in lines.items())


def _differ(starts: tuple[tuple[int, ...], ...] | None, collective: Collective) -> bool:
    return (
        starts is not None
        and all(member < len(starts[0]) for group in collective.groups for member in group)
        and all(len({tuple(each[member] for each in starts) for member in group}) > 1 for group in collective.groups)
    )


# Results that are returned whole


class ReturnedSum(Record, frozen=True):
    """A replicated result that is computed elementwise from a sum over axes that shard an argument like it."""

    collective: Collective
    output: ShardedValue
    argument: ShardedValue
    sharding: ArraySharding
    """The argument's."""

    @property
    def is_block(self) -> bool:
        """True if the argument is sharded over all axes of the sum, and the result over none of them."""
        own, summed = self.output.sharding, set(self.collective.axes or ())
        return own is not None and summed <= set(self.sharding.sharded) and summed.isdisjoint(own.sharded)


def _result(flow: HloFlow, use: HloUse | Output | None) -> tuple[int, ...]:
    """The number of a result of the program; -1 for a use for which a block is not enough."""
    if isinstance(use, Output):
        return (use.path[0] if use.path else 0,)
    return () if use is not None and flow.does(use) in USED_IN_BLOCKS else (-1,)


def returned_sums(report: Report) -> Iterator[ReturnedSum]:
    """Yield the results that need only a block of a sum on each device, if they were sharded as their arguments are."""
    arguments, outputs = (
        [value for value in report.shardings if value.role == role] for role in ("argument", "output")
    )
    sums = [each for each in in_hlo(report, "all-reduce") if each.axes and not each.loops]
    stage = report.program.stage(sums[0].stage) if sums and outputs else None
    flow = None if stage is None else hlo_flow(stage)
    if flow is None:
        return
    leaves = ([Leaf(each.name, each.type) for each in values] for values in (arguments, outputs))
    alike = {number: [arguments[each] for each in found] for number, found in counterparts(*leaves).items()}
    sharded = {
        number: (outputs[number], found[0], sharding)
        for number, found in alike.items()
        if len({each.sharding for each in found}) == 1 and (sharding := found[0].sharding) is not None
    }
    ends = Ends(flow, SAME | POINTWISE, partial(_result, flow), decisive=(-1,))
    for collective in sums if sharded else ():
        for value in [value for value, type in results_of(flow.module, collective) if (type.elements or 1) > 1]:
            numbers = ends.of(value)
            if numbers <= sharded.keys():
                returned = [ReturnedSum(collective, *sharded[each]) for each in sorted(numbers)]
                if all(each.is_block for each in returned):
                    yield from returned
