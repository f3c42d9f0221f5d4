"""Compiled collectives of whose results each device seems to use a block alone: a trial decides whether it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ....parsers.hlo import Instruction
from ....parsers.hlo.types import TupleShape
from ....parsers.record import Record
from ....parsers.sharding_syntax.mesh import AxisRef
from ...dataflow.graph import Output
from ...dataflow.hlo import HloFlow, HloUse, HloValue, hlo_flow
from ...dataflow.integers import PartitionNumbers, partition_numbers
from ...dataflow.meaning import Does
from ...dataflow.walks import Ends
from ...ir.derived import derived
from ...ir.stage import ParsedStage
from ...ir.types import ArrayType, array_type
from ...report import Collective, Finding, Kind, Report, SourcePosition
from ...shardings.collective_causes import causes_of
from .compiled import in_hlo
from .own_block import IN_BLOCKS

MAX_PARTITIONS = 1 << 12

THROUGH = IN_BLOCKS | Does.LOOKUP | Does.PLACE


class UsedBlocks(Record, frozen=True):
    """A collective, and those of its results of which each device uses a block alone, taken by the `slices`."""

    collective: Collective
    types: tuple[ArrayType, ...]
    slices: tuple[tuple[Instruction, ...], ...]

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
        """Return the start of each partition's slice, by dimension that is cut; None where that is not known."""
        found = []
        operand = next(iter(use.instruction.operand_types), None)
        before, after = (
            () if each is None else array_type(each).shape or () for each in (operand, use.instruction.type)
        )
        for dim, (whole, size) in enumerate(zip(before, after, strict=False)):
            if whole == size:
                continue
            start = self._flow.operand(use.result, 1 + dim)
            numbers = None if start is None else self._numbers.scalar(start)
            if numbers is None:
                return None
            found.append(numbers)
        return tuple(found)

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
    slices = _slices(stage)
    instruction = None if stage.hlo is None else stage.hlo.instruction(collective.computation, collective.name)
    if slices is None or instruction is None:
        return None
    found = {}
    for value, type in zip(results_of(instruction, collective), collective.result_types, strict=True):
        uses = slices.of(value)
        known = [each for each in uses if each is not None]
        if known and len(known) == len(uses) and all(_differ(slices.starts(each), collective) for each in known):
            found[value] = type, tuple(sorted({each.instruction for each in known}, key=lambda each: each.start))
    types, taken = zip(*found.values(), strict=True) if found else ((), ())
    return UsedBlocks(collective, types, taken) if found else None


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


def results_of(instruction: Instruction, collective: Collective) -> tuple[HloValue, ...]:
    """The values that a collective gives, one for each of its result types."""
    count = len(collective.result_types)
    # The first half of an asynchronous one has the tuple that its other half gives.
    is_tuple = count > 1 or (not instruction.opcode.endswith("-start") and isinstance(instruction.type, TupleShape))
    return tuple(HloValue(instruction, (number,) if is_tuple else ()) for number in range(count))


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


def with_other_targets(targets: Sequence[str], reports: Sequence[Report]) -> tuple[Report, ...]:
    """Reports of one function with what other targets' compilers make of sums that are not reduce-scattered."""
    return tuple(
        replace(
            report,
            findings=tuple(
                replace(found, evidence=(*found.evidence, *_on_others(found, number, targets, reports)))
                if found.rule == "SS01"
                else found
                for found in report.findings
            ),
        )
        for number, report in enumerate(reports)
    )


def _on_others(
    found: Finding, number: int, targets: Sequence[str], reports: Sequence[Report]
) -> Iterator[tuple[str, str]]:
    for other, (target, report) in enumerate(zip(targets, reports, strict=True)):
        if other == number or not report.capture.complete:
            continue
        scattered = sum(
            len(each.result_types) for each in in_hlo(report, "reduce-scatter") if _is_over(found.axes, each)
        )
        used = used_in_blocks(report, "all-reduce")
        left = sum(len(each.types) for each in used if _is_over(found.axes, each.collective))
        if scattered or left:
            rest = f", {left} all-reduced of which blocks are used" if left else ""
            yield f"on {target}", f"{scattered or 'none'} reduce-scattered{rest}"


def _is_over(axes: Iterable[AxisRef], collective: Collective) -> bool:
    return collective.axes is not None and set(collective.axes) == set(axes)
