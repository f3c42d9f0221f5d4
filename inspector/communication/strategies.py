"""The collectives of a program as strategies of parallelism, with totals per step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ...parsers.hlo import Instruction
from ..catalog.spellings import KIND_OF
from ..dataflow.hlo import HloUse
from ..dataflow.meaning import SAME, Does, does, meaning_of
from ..dataflow.sources import Place, ValueFlow, value_flow
from ..dataflow.walks import forward
from ..execution_counts.hlo_executions import HloExecutions, hlo_executions
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..report import Collective, ShardedValue
from ..report.communication import StrategyTotal
from ..shardings.collective_causes import causes_of
from ..shardings.sharded_dimensions import moves_whole_numbers
from ..units import grouped, known_sum
from .purposes import Judge, Purpose, is_scalar
from .weights import weights_of

LISTED = ("hlo", "hlo-spmd", "stablehlo")
"""The stages whose collectives are a program's communication, the one that is closest to what runs first."""

SUMMED = ("tensor parallelism", "other")
"""The strategies of a sum of activations, by itself."""


def strategies(
    program: Program, collectives: Iterable[Collective], shardings: Sequence[ShardedValue] = ()
) -> tuple[StrategyTotal, ...]:
    """The totals of the program that runs, those that send most first.

    `shardings` are those of its arguments, and of what its shard_maps take and give.
    """
    listed, stage = _program_that_runs(program, collectives)
    flow = None if stage is None else value_flow(stage)
    purposes = _of_weights(program, _purposes(program, flow, listed), listed, shardings)
    members = zip(listed, purposes, strict=True)
    groups = grouped(((purpose.strategy, each.kind, each.axes), (each, purpose)) for each, purpose in members)
    executions = None if stage is None else hlo_executions(stage)
    sums = [place for purpose in purposes for place in purpose.gradients]
    gradients = {} if flow is None else gradients_of(flow, sums)
    totals = (_total(group, executions, gradients) for group in groups.values())
    return tuple(sorted(totals, key=lambda total: -(total.wire_bytes or total.most_bytes or 0)))


def most_sent(program: Program, collectives: Iterable[Collective]) -> int | None:
    """The most bytes that one step sends, of whatever strategy: of branches that exclude each other, those of one."""
    listed, stage = _program_that_runs(program, collectives)
    return _most(listed, None if stage is None else hlo_executions(stage))


def _program_that_runs(
    program: Program, collectives: Iterable[Collective]
) -> tuple[Sequence[Collective], ParsedStage | None]:
    """The collectives of the stage that is closest to what runs, and that stage, where it has some."""
    name = next((each for each in LISTED if program.capture.stage(each) is not None), None)
    listed = [each for each in collectives if each.stage == name]
    return listed, program.stage(name) if name is not None and listed else None


def _most(collectives: Sequence[Collective], executions: HloExecutions | None) -> int | None:
    """The most bytes that one step sends: of the branches of an HLO's conditional those of one."""
    sent: dict[str, int] = {}
    for each in collectives:
        if each.wire_bytes is None or each.most_executions is None:
            return None
        runs = each.most_executions if executions is None else 1
        sent[each.computation] = sent.get(each.computation, 0) + each.wire_bytes * runs
    return sum(sent.values()) if executions is None else executions.most_of(sent)


def _total(
    members: Sequence[tuple[Collective, Purpose]], executions: HloExecutions | None, gradients: Mapping[Place, Place]
) -> StrategyTotal:
    collectives = tuple(each for each, _ in members)
    first, purpose = members[0]
    sent = known_sum(each.step_bytes for each in collectives)
    return StrategyTotal(
        strategy=purpose.strategy,
        kind=first.kind,
        axes=first.axes,
        collectives=collectives,
        wire_bytes=sent,
        most_bytes=_most(collectives, executions) if sent is None else sent,
        seconds=known_sum(each.step_seconds for each in collectives),
        arguments=tuple(dict.fromkeys(path for _, each in members for path in each.arguments)),
        gradients=len({gradients[place] for _, each in members for place in each.gradients})
        + sum(_concatenated(collective) - 1 for collective, each in members if len(each.gradients) == 1),
    )


def _concatenated(collective: Collective) -> int:
    if len(collective.operand_types) != 1:
        return 1
    return max(sum(part.type.elements != 1 for part in collective.parts), 1)


def _completes_a_reduction(program: Program, collective: Collective) -> bool:
    """Return whether it gathers what each device has reduced, as of an argmax over a sharded dimension."""
    causes = causes_of(program, collective) if collective.kind == "all-gather" else ()
    return bool(causes) and all(each.effect == "sum" and does(each.primitive) is not Does.CONTRACT for each in causes)


def _begun(flow: ValueFlow, ring: Iterable[Collective]) -> Mapping[object, Collection[Instruction]]:
    """The instructions whose results the permutes of a ring send on, by the pairs of those."""
    sent: dict[object, list[Place]] = {}
    for each in ring:
        instruction = flow.module.instruction(each.computation, each.name)
        if each.kind == "collective-permute" and instruction is not None:
            sent.setdefault(each.pairs, []).extend(flow.operands(instruction))
    return {pairs: frozenset(flow.dependencies(places)) for pairs, places in sent.items()}


def _of_weights(
    program: Program, purposes: Sequence[Purpose], listed: Sequence[Collective], shardings: Sequence[ShardedValue]
) -> Sequence[Purpose]:
    """The purposes, but that products of a shard_map whose weights are whole over an axis are not parallel over it."""
    weights = weights_of(program)
    data = {each.value for each in shardings if each.role == "argument" and each.name not in weights}
    passed = {each.value for each in shardings if each.role == "shard_map output"}
    inputs = [each for each in shardings if each.role == "shard_map input" and each.value not in passed]
    if not weights or not inputs:
        return purposes
    # Of a batch, the rows may be split; so are weights that are not trained, in another dimension.
    taken = [each.sharding.dims[each.value in data :] for each in inputs if each.sharding is not None]
    split = {axis.name for dims in taken for dim in dims for axis in dim.axes}
    return [
        Purpose()
        if purpose.strategy == "tensor parallelism"
        and each.origin in ("user", "autodiff")
        and split.isdisjoint(axis.name for axis in each.axes or ())
        else purpose
        for each, purpose in zip(listed, purposes, strict=True)
    ]


def _purposes(program: Program, flow: ValueFlow | None, listed: Sequence[Collective]) -> Sequence[Purpose]:
    if flow is None:
        return [Purpose("scalar reductions" if is_scalar(each) else "other") for each in listed]
    judge = Judge(program, flow, listed)
    found = list(map(judge.purpose, listed))
    # Softmax and embeddings that are sharded as the matmuls are belong to the same strategy.
    contracted, staged = (
        {each.axes for each, purpose in zip(listed, found, strict=True) if purpose.strategy == strategy}
        for strategy in ("tensor parallelism", "pipeline")
    )
    for strategy in ("pipeline", "ring exchange"):
        begun = _begun(flow, (each for each, is_of in zip(listed, found, strict=True) if is_of.strategy == strategy))
        for number, each in enumerate(listed):
            is_left = each.kind == "collective-permute" and found[number].strategy in ("other", "resharding")
            if is_left and flow.module.instruction(each.computation, each.name) in begun.get(each.pairs, ()):
                found[number] = Purpose(strategy)
    rings = {
        ring: purpose
        for each, purpose in zip(listed, found, strict=True)
        if each.kind == "collective-permute" and purpose.strategy not in ("other", "resharding")
        if (ring := flow.module.instruction(each.computation, each.name)) is not None
    }
    for number, each in enumerate(listed):
        is_left = each.kind == "collective-permute" and found[number].strategy in ("other", "resharding")
        if is_left and rings and (ring := judge.ring_of(each, rings.keys())) is not None:
            found[number] = rings[ring]
    for number, each in enumerate(listed):
        if found[number].strategy in SUMMED and each.axes in staged and judge.collects_stages(each):
            found[number] = Purpose("pipeline")
        elif found[number].strategy == "other" and KIND_OF[each.kind].reduces and judge.is_reduction(each):
            found[number] = Purpose("reductions")
        elif found[number].strategy == "other" and each.averages:
            found[number] = Purpose("averages")
        elif found[number].strategy == "other" and _completes_a_reduction(program, each):
            found[number] = Purpose("reductions")
        elif found[number].strategy == "other" and each.kind == "all-gather" and moves_whole_numbers(each):
            # Indices are no partial sums.
            found[number] = Purpose("resharding" if each.origin in ("partitioner", "explicit") else "other")
        elif found[number].strategy == "other" and each.axes in contracted:
            # An all-gather is the transpose of the reduce-scatter of partial sums, and takes the place of the other.
            causes = causes_of(program, each) if KIND_OF[each.kind].reduces else ()
            if each.kind == "all-gather" or any(cause.effect == "sum" and not cause.needed for cause in causes):
                found[number] = Purpose("tensor parallelism")
    return found


MAX_VALUES = 1_000
"""Values that are followed for one sum."""

SCALED = SAME | Does.SCALE | Does.SLICE
"""Operations that hand on a sum, scaled or masked, or of which each device keeps its own block."""


def gradients_of(flow: ValueFlow, sums: Iterable[Place]) -> Mapping[Place, Place]:
    """Return for each result of a sum the first one that is a part of the same gradient.

    They are if they are added to each other, or if one is added to what another sums.
    """
    found: dict[Place, Place] = {}
    first: dict[object, Place] = {}

    def root(place: Place) -> Place:
        while found[place] != place:
            place = found[place]
        return place

    for each in sums:
        found.setdefault(each, each)
        for met in (each, *_additions(flow, each)):
            other = first.setdefault(met, each)
            found[root(each)] = root(other)
    return {each: root(each) for each in found}


def _additions(flow: ValueFlow, start: Place) -> Iterator[Instruction | Place]:
    """The additions that take a sum, in fusions too, and the sums of these."""
    reach = forward(flow.flow, flow.values(start), SCALED | Does.ADD | Does.PLACE, keeps=_keeps, limit=MAX_VALUES)
    yield from (use.instruction for use in reach.steps if flow.flow.does(use) & (Does.ADD | Does.PLACE))
    for use in reach.ends:
        if does(use.instruction.opcode) is Does.SUM:
            yield Place(use.instruction, use.position if len(use.instruction.operands) > 1 else None)


def _keeps(use: HloUse) -> bool:
    """Return whether a sum stays what it is: of what places it in something larger, only scatters add to it."""
    return not meaning_of(use.instruction.opcode).of(use.position) & Does.PLACE or use.instruction.opcode == "scatter"
