"""Compiled all-reduces and all-gathers, of whose results every device uses its own block alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ....parsers.hlo.fields import number
from ....parsers.record import Record
from ....parsers.sharding_syntax.mesh import AxisRef, MeshSyntax, join_axes
from ...catalog.spellings import KIND_OF
from ...collectives.context import context_of
from ...collectives.stage import collectives_in_context
from ...cost.collectives import estimate
from ...cost.places import machine_of
from ...ir.meshes import axes_of_groups
from ...ir.stage import ParsedStage
from ...ir.types import ArrayType
from ...report import Collective, Finding, Kind, Pass, Report, SourcePosition
from ...units import known_sum, plural
from ..rule import Saving
from .compiled import in_hlo, saving
from .hlo_blocks import UsedBlocks, used_blocks


class Unformed(Record, frozen=True):
    """A collective of the compiled program, and those of its results of which each device uses its own block alone."""

    collective: Collective
    used: tuple[UsedBlocks, ...]

    @property
    def types(self) -> tuple[ArrayType, ...]:
        """The types of those results."""
        return tuple(self.collective.result_types[each.result] for each in self.used)

    @property
    def bytes(self) -> int | None:
        """Size of those results in bytes."""
        return known_sum(type.bytes for type in self.types)

    def saving(self, report: Report) -> Saving:
        """Return the saving of a reduce-scatter instead of the all-reduce, in one run of the program."""
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
        estimates = (estimate(each, machine) for each in then)
        seconds = known_sum(None if each is None else each.seconds for each in estimates)
        return None if seconds is None else (now.estimate.seconds - seconds) * runs


def _sent(kind: Kind, members: int, size: int) -> int:
    return KIND_OF[kind].wire_bytes(members, size, size) or 0


def unformed_scatters(report: Report) -> Iterator[tuple[Unformed, ...]]:
    """The reduce-scatters that did not form, together where they are over the same axes in the same pass.

    Sums that were combined with others, such as a loss, have no pass of their own: they are with the first ones.
    """
    groups: dict[object, dict[Pass, list[Unformed]]] = {}
    found = sorted(used_in_blocks(report, "all-reduce"), key=lambda each: each.collective.direction == "unknown")
    for each in found:
        passes = groups.setdefault(each.collective.axes, {})
        direction = each.collective.direction
        passes.setdefault(next(iter(passes), direction) if direction == "unknown" else direction, []).append(each)
    yield from (tuple(group) for passes in groups.values() for group in passes.values())


def used_in_blocks(report: Report, kind: Kind) -> Iterator[Unformed]:
    """The compiled collectives of a kind that have results of which each device uses its own block alone."""
    for collective in in_hlo(report, kind):
        stage = report.program.stage(collective.stage)
        used = () if stage is None or collective.fused_form is not None else used_blocks(stage, collective)
        if used:
            yield Unformed(collective, used)


class Enough(NamedTuple):
    """A collective of `kind` in `groups` that gives each device all that it uses; none if it has that already."""

    kind: Kind | None
    groups: tuple[tuple[int, ...], ...]

    def text(self, meshes: Iterable[MeshSyntax]) -> str:
        """It as one would call it."""
        if self.kind != "all-gather":
            return self.kind or "its own"
        axes = next((axes for mesh in meshes if (axes := axes_of_groups(self.groups, mesh))), None)
        return f"one over {join_axes(axes)}" if axes else f"one in groups of {len(self.groups[0])}"


def enough_for(report: Report, gather: Unformed) -> Enough | None:
    """Return a single collective that gives each device the blocks that it uses of an all-gather, if there is one."""
    collective = gather.collective
    module = report.program.hlo(collective.stage)
    instruction = None if module is None else module.instruction(collective.computation, collective.name)
    if instruction is None or len(gather.used) < len(collective.result_types):
        return None
    along = instruction.attributes.get("dimensions", "").strip("{}")
    dim = number(along)
    found = {None} if dim is None else {_enough_of(collective.groups, used, dim) for used in gather.used}
    return found.pop() if len(found) == 1 else None


def _enough_of(groups: tuple[tuple[int, ...], ...], used: UsedBlocks, along: int) -> Enough | None:
    members = len(groups[0])
    gathered = [block for block in used.blocks if block.split.dim == along]
    if not gathered:
        return Enough("all-to-all", groups) if used.shares == members else None
    (split, positions), *others = gathered
    wanted = math.gcd(members, split.parts)
    if others or split.repeats != 1 or wanted != min(members, split.parts):
        return None
    inside, together = split.parts // wanted, members // wanted
    own = all(
        positions[device] // inside == number // together for group in groups for number, device in enumerate(group)
    )
    if not own:
        return Enough("collective-permute", groups) if split.parts == used.shares == members else None
    if together == 1:
        return Enough(None, groups)
    parts = (group[first : first + together] for group in groups for first in range(0, members, together))
    return Enough("all-gather", tuple(parts))


def saving_with(report: Report, gather: Unformed, enough: Enough | None) -> Saving:
    """Return the saving of that collective in place of an all-gather, where it can be computed."""
    now = gather.collective
    if enough is None or enough.kind not in (None, "all-gather"):
        return Saving()
    whole = saving(now, times=None)
    if enough.kind is None or now.bytes_out is None or whole.bytes is None or now.executions is None:
        return whole
    members = len(enough.groups[0])
    size = now.bytes_out * members // len(now.groups[0])
    less = replace(now, groups=enough.groups, bytes_out=size, axes=None)
    machine = machine_of(report.program)
    then = None if machine is None else estimate(less, machine)
    return Saving(
        whole.bytes - (KIND_OF["all-gather"].wire_bytes(members, now.bytes_in, size) or 0) * now.executions,
        None if then is None or whole.seconds is None else whole.seconds - then.seconds * now.executions,
    )


def since(report: Report, axes: tuple[AxisRef, ...] | None, count: int) -> tuple[str, str] | None:
    """The first pass of the compiler after which there are both the sums, `count` of them, and the slices, as evidence.

    Without records of passes, whether that is the partitioner; None where nothing says so.
    """
    program = report.program
    snapshots = [
        (f"the pass {each.name}, {'which' if each.changes else 'or one before it that'}", ParsedStage(each.stage))
        for each in program.capture.passes
    ]
    partitioned = [("the partitioner, which", stage) for stage in program.stages if stage.name == "hlo-spmd"]
    for name, stage in snapshots or partitioned:
        there = collectives_in_context(stage, context_of(program))
        alike = [each for each in there if each.kind == "all-reduce" and each.axes == axes]
        found = sum(len(used_blocks(stage, each)) for each in alike)
        if found:
            return "since", f"{name} made {plural(min(found, count), 'all-reduce')} and slices of them"
    return None


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
        left = sum(
            len(each.used) for each in used_in_blocks(report, "all-reduce") if _is_over(found.axes, each.collective)
        )
        if scattered or left:
            rest = f", {left} all-reduced of which blocks are used" if left else ""
            yield f"on {target}", f"{scattered or 'none'} reduce-scattered{rest}"


def _is_over(axes: Iterable[AxisRef], collective: Collective) -> bool:
    return collective.axes is not None and set(collective.axes) == set(axes)


def listed(report: Report, group: Iterable[Unformed]) -> Iterator[tuple[str, str]]:
    """Return the summed values as evidence: one line per place, the largest first."""
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
    """Return the place of the largest sum."""
    every = [(type, each, used) for each in group for type, used in zip(each.types, each.used, strict=True)]
    largest = max(every, key=lambda one: math.prod(one[0].shape or (1,)))
    return _source(*largest[1:])


def _source(unformed: Unformed, used: UsedBlocks) -> SourcePosition:
    frames = next((each.frames for each in used.slices if each.frames), ())
    return SourcePosition.exact(frames) if frames else unformed.collective.source
