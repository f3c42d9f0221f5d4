"""The analyses in their order: from what was captured to a Report."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

from ..parsers.garbage import collection_paused
from .capture.model import Capture
from .collectives.context import AnalysisContext, context_of
from .collectives.stage import collectives_in_context, collectives_of, parts_in
from .collectives.uncounted import uncounted_communication
from .communication.axis_use import axes_used
from .communication.strategies import most_sent, strategies
from .correspondence.chain import linked_parts
from .cost.collectives import with_estimates
from .cost.function import cost_of, timeline_of
from .cost.memory_curve import memory_curve, peak_instruction
from .cost.peak_memory import alive_at_peak, is_tpu, peak_memory
from .cost.places import Machine, machine_of
from .cost.schedule import Schedule
from .findings.judge import with_findings
from .findings.kept import with_kept
from .findings.settled import settled
from .ir.derived import derived
from .ir.program import Program
from .ir.stage import ParsedStage
from .report import Collective, Report, StageSummary
from .report.changes import Diff, PassChange
from .report.cost import FunctionCost
from .report.links import LinkedPart
from .report.policy import EVERYTHING, Policy
from .report.report import OnDemand, Torus
from .report.stage_summary import summarize
from .report.timeline import Timeline
from .selection.message_places import placed_messages
from .selection.selection import linked, values_at
from .shardings.collective_causes import causes_of
from .shardings.conflicts import conflicts, in_conflict
from .shardings.explained import propagation, why, why_axes
from .shardings.requested import contradictions
from .shardings.table import borders, differing_from_xla, propagated, values
from .values.probed import divergences, place_probes
from .variance.entry_chain import entry_chains
from .variance.variables import variance_of

COMPILED = ("hlo", "hlo-spmd", "hlo-before")
"""Stages in order of preference: the first one present is listed; before the partitioner, StableHLO says the same."""


def inspect(captured: Capture | Program, policy: Policy = EVERYTHING) -> Report:
    """Everything that can be said of what was recorded so far, with the findings that are wanted.

    Of a program that was inspected before nothing is read again.
    """
    return settled(with_kept(suspected(captured, policy), policy))


@collection_paused()
def suspected(captured: Capture | Program, policy: Policy = EVERYTHING) -> Report:
    """The same with findings as the rules make them, before it is known which fixes help."""
    program = Program(captured) if isinstance(captured, Capture) else captured
    capture, jaxpr = program.capture, program.jaxpr
    variance = () if jaxpr is None else variance_of(jaxpr)
    collectives = tuple(
        collective
        for stage in communicating_stages(program)
        for collective in _estimated(stage, context_of(program), machine_of(program))
    )
    shardings = borders(program)
    totals = strategies(program, collectives, shardings)
    report = Report(
        program=program,
        meshes=program.meshes,
        partitions=program.partitions,
        collectives=collectives,
        communication=totals,
        axes=axes_used(program, shardings, totals),
        most_sent=most_sent(program, collectives),
        uncounted=uncounted_communication(program),
        shardings=shardings,
        variance=variance,
        probes=place_probes(program, jaxpr, collectives),
        divergences=divergences(capture, jaxpr, variance),
        cost=_cost(program),
        peak=peak_memory(program),
        messages=(*contradictions(program, shardings), *differing_from_xla(program), *placed_messages(program)),
        on_demand=on_demand(program),
    )
    return with_findings(report, policy)


def _torus(program: Program) -> Torus | None:
    machine = machine_of(program)
    if machine is None or machine.chip.platform == "gpu":
        return None
    return Torus(machine.shape, machine.closed, machine.devices)


def _pass_changes(program: Program) -> tuple[PassChange, ...]:
    if not program.capture.passes:  # few captures have any, and what compares programs takes long to import
        return ()
    from .diff.passes import pass_changes

    return pass_changes(program)


def _diff(before: Report, after: Report) -> Diff:
    from .diff.diff import diff

    return diff(before, after)


def first_look(program: Program) -> Report:
    """Return what is known of a large program at once: shardings of its arguments, outputs and constraints."""
    return Report(
        program,
        meshes=program.meshes,
        partitions=program.partitions,
        shardings=borders(program),
        on_demand=on_demand(program),
    )


@derived
def on_demand(program: Program) -> OnDemand:
    """Return the analyses of a program that are made when somebody asks."""
    jaxpr = program.jaxpr
    return OnDemand(
        causes=partial(causes_of, program),
        conflicts=partial(conflicts, program),
        in_conflict=partial(in_conflict, program),
        values=partial(values, program),
        why=partial(why, program),
        reasons=partial(why_axes, program),
        way=lambda value, entry: () if jaxpr is None else entry_chains(jaxpr).of(value, entry),
        collectives=partial(collectives_of, program),
        listed_stages=partial(communicating_stages, program),
        stage_summaries=partial(stage_summaries, program),
        alive_at_peak=partial(alive_at_peak, program),
        timeline=partial(timeline, program),
        torus=partial(_torus, program),
        pass_changes=partial(_pass_changes, program),
        diff=_diff,
        linked=linked,
        values_at=partial(values_at, program),
        propagation=partial(propagation, program),
    )


def communicating_stages(program: Program) -> tuple[ParsedStage, ...]:
    """The stages whose collectives are listed: what the user wrote, and what runs, or is the nearest to it.

    While the compiler runs, a partitioned program is not the nearest: its all-reduces become reduce-scatters, or fewer.
    """
    written, progress = program.stage("stablehlo"), program.capture.progress
    is_compiling = progress is not None and progress.phase == "compile"
    names = COMPILED[:1] if is_compiling else COMPILED if written is None else COMPILED[:-1]
    return tuple(filter(None, (written, next(filter(None, map(program.stage, names)), None))))


@derived
def _estimated(stage: ParsedStage, context: AnalysisContext, machine: Machine | None) -> tuple[Collective, ...]:
    found = collectives_in_context(stage, context)
    return found if machine is None else tuple(with_estimates(found, machine))


def timeline(program: Program) -> Timeline | None:
    """Return a device's time line by the cost model; None if nothing is compiled, or the chip has no figures."""
    found, stage, ranges = _schedule_of(program), program.stage("hlo"), program.capture.peak
    if found is None or stage is None:
        return None
    line = timeline_of(found)
    if ranges is None:
        return line
    on_tpu = is_tpu(program)
    return replace(
        line,
        memory=memory_curve(stage, ranges.data, line.activities, on_tpu=on_tpu),
        at_peak=peak_instruction(stage, ranges.data, on_tpu=on_tpu),
    )


def links(program: Program) -> tuple[LinkedPart, ...]:
    """Return what each part of the collectives that run was in every stage before."""
    *_, stage = communicating_stages(program) or (None,)
    if stage is None or stage.hlo is None:
        return ()
    context, (propagated_in, flow) = context_of(program), propagated(program)
    parts = parts_in(stage, context)
    return linked_parts(program, stage, collectives_in_context(stage, context), parts, propagated_in, flow)


def _cost(program: Program) -> FunctionCost | None:
    found = _schedule_of(program)
    return None if found is None else cost_of(found)


def _schedule_of(program: Program) -> Schedule | None:
    stage, machine = program.stage("hlo"), machine_of(program)
    return None if stage is None or machine is None else _schedule(stage, context_of(program), machine)


@derived
def _schedule(stage: ParsedStage, context: AnalysisContext, machine: Machine) -> Schedule | None:
    return None if stage.hlo is None else Schedule(stage.hlo, _estimated(stage, context, machine), machine)


def stage_summaries(program: Program) -> tuple[StageSummary, ...]:
    """Return the size and the contents of every stage, also of those whose collectives are not listed."""
    return tuple(_summary(stage, context_of(program)) for stage in program.stages)


@derived
def _summary(stage: ParsedStage, context: AnalysisContext) -> StageSummary:
    kinds = Counter(each.kind for each in collectives_in_context(stage, context))
    return replace(summarize(stage), collective_counts=dict(sorted(kinds.items())))
