"""Results of compiled collectives of which every device uses its own block alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ....parsers.hlo import Instruction
from ....parsers.hlo.types import TupleShape
from ....parsers.record import Record
from ...dataflow.graph import Output
from ...dataflow.hlo import HloFlow, HloUse, HloValue
from ...dataflow.integers import PartitionNumbers, partition_numbers
from ...ir.stage import ParsedStage
from ...report import Collective
from .hlo_dimensions import Split, dims_of, operand_type, passes, splits_before

MAX_STEPS = 5_000
"""Values that are followed from one."""

MAX_PARTITIONS = 1 << 12


class Block(NamedTuple):
    """One of the blocks of each run of a split dimension: which one each partition has."""

    split: Split
    positions: tuple[int, ...]


Blocks = frozenset[Block]


class UsedBlocks(Record, frozen=True):
    """The blocks that all partitions use of a collective's result number `result`, one each.

    In each group `shares` different ones are used, as often as each other. `slices` are the instructions that take
    them.
    """

    result: int
    blocks: Blocks
    shares: int
    slices: tuple[Instruction, ...]

    @property
    def parts(self) -> int:
        """Number of equal blocks of which each partition uses one."""
        return math.prod(block.split.parts for block in self.blocks)


def used_blocks(stage: ParsedStage, collective: Collective) -> tuple[UsedBlocks, ...]:
    """The results of a collective of which each partition uses a block alone, different ones in each group."""
    instruction = None if stage.hlo is None else stage.hlo.instruction(collective.computation, collective.name)
    partitions = stage.module.devices if stage.module is not None else 0
    members = {len(group) for group in collective.groups}
    if instruction is None or len(members) != 1 or not 1 < partitions <= MAX_PARTITIONS:
        return ()
    numbers = partition_numbers(stage, partitions)
    found = []
    for number, value in enumerate(results_of(instruction, collective)):
        used = None if numbers is None else _followed(numbers, value)
        if used is not None:
            blocks, slices = used
            shares = _shares(blocks, collective.groups)
            if shares is not None and shares > 1:
                found.append(UsedBlocks(number, blocks, shares, slices))
    return tuple(found)


def results_of(instruction: Instruction, collective: Collective) -> tuple[HloValue, ...]:
    """The values that a collective gives, one for each of its result types."""
    is_tuple = _gives_tuple(instruction, collective)
    return tuple(HloValue(instruction, (number,) if is_tuple else ()) for number in range(len(collective.result_types)))


def _gives_tuple(instruction: Instruction, collective: Collective) -> bool:
    if len(collective.result_types) > 1:
        return True
    if instruction.opcode.endswith("-start"):
        return False  # what its other half gives
    return isinstance(instruction.type, TupleShape)


def _shares(blocks: Blocks, groups: Sequence[Sequence[int]]) -> int | None:
    """Return the number of different blocks used in each group; None unless equally many members use each."""
    found = set()
    for group in groups:
        counts: dict[tuple[int, ...], int] = {}
        for partition in group:
            if any(partition >= len(block.positions) for block in blocks):
                return None
            mine = tuple(block.positions[partition] for block in sorted(blocks))
            counts[mine] = counts.get(mine, 0) + 1
        if len(set(counts.values())) != 1:
            return None
        found.add(len(counts))
    return found.pop() if len(found) == 1 else None


@dataclass(slots=True)
class _Search:
    ends: list[tuple[HloValue, Blocks, Instruction]] = field(default_factory=list)
    into: dict[HloValue, list[tuple[HloValue, HloUse | None]]] = field(default_factory=dict)


def _followed(numbers: PartitionNumbers, start: HloValue) -> tuple[Blocks, tuple[Instruction, ...]] | None:
    """Return the block that partitions use of a value, and the slices that take it."""
    search, flow = _Search(), numbers.flow
    waiting, seen = [start], {start}
    while waiting:
        value = waiting.pop()
        if value in flow.used_whole:
            _keep_used_whole(flow, search, value)
            return None
        for use in flow.uses(value):
            if len(seen) > MAX_STEPS:
                return None
            if use is None or isinstance(use, Output):
                _keep_used_whole(flow, search, value)
                return None
            if isinstance(use, HloUse):
                if use.instruction.opcode == "dynamic-slice" and use.position == 0:
                    blocks = _taken(numbers, use)
                    if blocks is None:
                        _keep_used_whole(flow, search, value)
                        return None
                    search.ends.append((value, blocks, use.instruction))
                    continue
                if not passes(use):
                    _keep_used_whole(flow, search, value)
                    return None
            after = use.result if isinstance(use, HloUse) else use
            search.into.setdefault(after, []).append((value, use if isinstance(use, HloUse) else None))
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    blocks = _back(search, start)
    return None if not blocks else (blocks, tuple(dict.fromkeys(end[2] for end in search.ends)))


def _keep_used_whole(flow: HloFlow, search: _Search, value: HloValue) -> None:
    """Keep that a value is not used as a block alone, nor what it was reached from: the next search stops there."""
    flow.used_whole.add(value)
    waiting = [value]
    while waiting:
        for before, _ in search.into.get(waiting.pop(), ()):
            if before not in flow.used_whole:
                flow.used_whole.add(before)
                waiting.append(before)


def _back(search: _Search, start: HloValue) -> Blocks | None:
    """The blocks of the first value that are those at the ends; None where they are not the same for all of them."""
    wanted: dict[HloValue, Blocks] = {}
    for value, blocks, _ in search.ends:
        if wanted.setdefault(value, blocks) != blocks:
            return None
    waiting = list(wanted)
    while waiting:
        value = waiting.pop()
        for before, use in search.into.get(value, ()):
            found = wanted[value] if use is None else _before(use, wanted[value])
            if found is None:
                return None
            if before in wanted:
                if wanted[before] != found:
                    return None
                continue
            wanted[before] = found
            waiting.append(before)
    return wanted.get(start)


def _taken(numbers: PartitionNumbers, use: HloUse) -> Blocks | None:
    """Return the slice's share of a value, if it is one of equal blocks."""
    before, after = dims_of(operand_type(use)), dims_of(use.instruction.type)
    if before is None or after is None or len(before) != len(after):
        return None
    found = set()
    for dim, (whole, size) in enumerate(zip(before, after, strict=True)):
        if size == whole:
            continue
        start = numbers.flow.operand(use.result, 1 + dim)
        starts = None if start is None else numbers.scalar(start)
        if starts is None or not size or whole % size:
            return None
        starts = tuple(max(0, min(each, whole - size)) for each in starts)
        if any(each % size for each in starts):
            return None
        found.add(Block(Split(dim, whole // size), tuple(each // size for each in starts)))
    return frozenset(found) or None


def _before(use: HloUse, blocks: Blocks) -> Blocks | None:
    """The blocks of an operand that those of the result are made of."""
    found = []
    for block in blocks:
        splits = splits_before(use, block.split)
        if splits is None:
            return None
        rest = block.split.parts
        for split in splits:
            rest //= split.parts
            found.append(Block(split, tuple(each // rest % split.parts for each in block.positions)))
    return _joined(found)


def _joined(blocks: Sequence[Block]) -> Blocks:
    """The blocks, those of one dimension together where one of them is the next split of what the other has."""
    joined: list[Block] = []
    for block in sorted(blocks, key=lambda each: (each.split.dim, each.split.repeats)):
        (dim, parts, repeats), positions = block
        last = joined[-1] if joined else None
        if last is not None and (last.split.dim, last.split.repeats * last.split.parts) == (dim, repeats):
            positions = tuple(one * parts + other for one, other in zip(last.positions, positions, strict=True))
            joined[-1] = Block(last.split._replace(parts=last.split.parts * parts), positions)
        else:
            joined.append(block)
    return frozenset(joined)
