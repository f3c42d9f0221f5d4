"""Compiled all-reduces and all-gathers, of whose results every device uses its own block alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ....parsers.sharding_syntax.mesh import AxisRef
from ...catalog.spellings import KIND_OF
from ...collectives.context import context_of
from ...collectives.stage import collectives_in_context
from ...cost.collectives import estimate
from ...cost.places import machine_of
from ...ir.types import ArrayType
from ...report import Collective, Kind, Report, SourcePosition
from ...units import plural
from ..rule import Saving
from .compiled import in_hlo
from .hlo_blocks import UsedBlocks, used_blocks


@dataclass(frozen=True, slots=True)
class Unformed:
    """A collective of the compiled program, and those of its results of which each device uses its own block alone."""

    collective: Collective
    used: tuple[UsedBlocks, ...]

    @property
    def types(self) -> tuple[ArrayType, ...]:
        """The types of those results."""
        return tuple(self.collective.result_types[each.result] for each in self.used)

    @property
    def bytes(self) -> int | None:
        """What those results hold."""
        sizes = [type.bytes for type in self.types]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def saving(self, report: Report) -> Saving:
        """What a reduce-scatter of those results, instead of the all-reduce, saves in one run of the program."""
        now, runs = self.collective, self.collective.executions
        size, members = self.bytes, len(now.groups[0])
        if size is None or runs is None:
            return Saving()
        saved = 0
        for each, type in zip(self.used, self.types, strict=True):
            whole = type.bytes or 0
            rest = _sent("all-reduce", members // each.shares, whole // each.shares)
            saved += _sent("all-reduce", members, whole) - _sent("reduce-scatter", each.shares, whole) - rest
        return Saving(saved * runs, self._seconds(report, size, members, runs))

    def _seconds(self, report: Report, size: int, members: int, runs: int) -> float | None:
        machine, now = machine_of(report.program), self.collective
        if machine is None or now.estimate is None or now.bytes_in is None:
            return None
        if any(each.shares != members for each in self.used):
            return None
        left = max(now.bytes_in - size, 0)
        then = [replace(now, kind="reduce-scatter", bytes_in=size, bytes_out=size // members)]
        then += [replace(now, bytes_in=left, bytes_out=left)] if left else []
        seconds = [estimate(each, machine) for each in then]
        known = sum(each.seconds for each in seconds if each is not None)
        return None if None in seconds else (now.estimate.seconds - known) * runs


def _sent(kind: Kind, members: int, size: int) -> int:
    return KIND_OF[kind].wire_bytes(members, size, size) or 0


def unformed_scatters(report: Report) -> Iterator[tuple[Unformed, ...]]:
    """The reduce-scatters that did not form, together where they are over the same axes in the same pass."""
    groups: dict[tuple[object, ...], list[Unformed]] = {}
    for each in used_in_blocks(report, "all-reduce"):
        groups.setdefault((each.collective.axes, each.collective.direction), []).append(each)
    yield from map(tuple, groups.values())


def used_in_blocks(report: Report, kind: Kind) -> Iterator[Unformed]:
    """The compiled collectives of a kind that have results of which each device uses its own block alone."""
    for collective in in_hlo(report, kind):
        stage = report.program.stage(collective.stage)
        used = () if stage is None or collective.fused_form is not None else used_blocks(stage, collective)
        if used:
            yield Unformed(collective, used)


def enough_for(report: Report, gather: Unformed) -> Kind | Literal["nothing"] | None:
    """What gives each device the blocks that it uses of an all-gather, where a single collective does."""
    collective = gather.collective
    module = report.program.hlo(collective.stage)
    instruction = None if module is None else module.instruction(collective.computation, collective.name)
    blocks = [block for used in gather.used for block in used.blocks]
    partial = len(blocks) < len(collective.result_types) or len(blocks) > len(gather.used)
    if instruction is None or partial or any(used.shares != len(collective.groups[0]) for used in gather.used):
        return None
    along = instruction.attributes.get("dimensions", "")
    if any(along != f"{{{block.dim}}}" for block in blocks):
        return "all-to-all"
    own = all(
        block.positions[device] == position
        for block in blocks
        for group in collective.groups
        for position, device in enumerate(group)
    )
    return "nothing" if own else "collective-permute"


def saving_of(report: Report, group: Iterable[Unformed]) -> Saving:
    """What all of them save."""
    savings = [each.saving(report) for each in group]
    sizes, seconds = [each.bytes for each in savings], [each.seconds for each in savings]
    return Saving(
        None if None in sizes else sum(size or 0 for size in sizes),
        None if None in seconds else sum(each or 0.0 for each in seconds),
    )


def since(report: Report, axes: tuple[AxisRef, ...] | None) -> tuple[str, str] | None:
    """The first stage that has both the sums and the slices, as evidence."""
    stage = report.program.stage("hlo-spmd")
    if stage is None:
        return None
    there = collectives_in_context(stage, context_of(report.program))
    alike = [each for each in there if each.kind == "all-reduce" and each.axes == axes]
    found = sum(len(used_blocks(stage, each)) for each in alike)
    return ("since", f"the partitioner, which made {plural(found, 'all-reduce')} and slices of them") if found else None


def listed(report: Report, group: Iterable[Unformed]) -> Iterator[tuple[str, str]]:
    """What is summed, as evidence: a line of it for each place, the largest first."""
    counts: dict[tuple[str, ArrayType, int], int] = {}
    for each in group:
        for used, type in zip(each.used, each.types, strict=True):
            key = (_source(each, used).text(report.script) or "no line known", type, used.parts)
            counts[key] = counts.get(key, 0) + (each.collective.executions or 1)
    lines: dict[str, list[str]] = {}
    for (where, type, parts), count in sorted(counts.items(), key=lambda item: -(item[0][1].bytes or 0)):
        lines.setdefault(where, []).append(f"{count} × {type}, of which each device uses 1 of {parts} blocks")
    for where, texts in lines.items():
        yield where, "; ".join(texts)


def place_of(group: Iterable[Unformed]) -> SourcePosition:
    """Where the largest of the sums comes from."""
    every = [(type, each, used) for each in group for type, used in zip(each.types, each.used, strict=True)]
    largest = max(every, key=lambda one: math.prod(one[0].shape or (1,)))
    return _source(*largest[1:])


def _source(unformed: Unformed, used: UsedBlocks) -> SourcePosition:
    frames = next((each.frames for each in used.slices if each.frames), ())
    return SourcePosition.exact(frames) if frames else unformed.collective.source
