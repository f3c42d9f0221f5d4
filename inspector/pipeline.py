"""The analyses in their order: from a Capture to a Report."""

from __future__ import annotations

from functools import lru_cache

from ..parsers.errors import Problem
from ..parsers.hlo import HloModule
from ..parsers.mlir import MlirModule
from .capture.model import Capture, Stage
from .collectives.hlo import hlo_collectives
from .collectives.jaxpr_sources import with_jaxpr_sources
from .collectives.origin import Partitioning, partitioning_of
from .collectives.setting import Setting
from .collectives.stablehlo import stablehlo_collectives
from .collectives.stacks import with_stacks
from .cost.collectives import with_estimates
from .cost.estimate import FunctionCost
from .cost.function import cost_of
from .cost.places import Machine, machine_of
from .findings.judge import with_findings
from .findings.policy import EVERYTHING, Policy
from .ir.jaxpr_text import JaxprText
from .ir.meshes import devices_of, meshes_of, partition_count
from .ir.program import jaxpr_of, read
from .message_places import placed_messages
from .peak_memory import peak_memory
from .report import Collective, Report
from .shardings.table import borders
from .stages import summarize
from .values.divergence import divergences
from .values.placed import place_probes
from .variance.variables import variance_of

COMMUNICATING = ("stablehlo", "hlo")
"""The stages whose collectives are listed: what the user wrote, and what runs."""


def inspect(capture: Capture, policy: Policy = EVERYTHING) -> Report:
    """Everything that can be said of what was recorded so far, with the findings that are wanted."""
    jaxpr = jaxpr_of(capture)
    variance = () if jaxpr is None else variance_of(jaxpr)
    report = Report(
        capture=capture,
        meshes=meshes_of(capture),
        partitions=partition_count(capture),
        stages=tuple(map(summarize, capture.stages)),
        collectives=tuple(
            collective
            for stage in capture.stages
            if stage.name in COMMUNICATING
            for collective in _estimated(stage, capture)
        ),
        shardings=borders(capture),
        variance=variance,
        probes=place_probes(capture, jaxpr),
        divergences=divergences(capture, jaxpr, variance),
        cost=_cost(capture),
        peak=peak_memory(capture),
        messages=placed_messages(capture),
    )
    return with_findings(report, policy)


def first_look(capture: Capture) -> Report:
    """What is known of a large program at once: how its arguments, outputs and constraints are sharded."""
    return Report(
        capture=capture,
        meshes=meshes_of(capture),
        partitions=partition_count(capture),
        shardings=borders(capture),
    )


def collectives_of(stage: Stage, capture: Capture) -> tuple[Collective, ...]:
    """The collectives of any stage of a capture, in text order."""
    setting = Setting(
        meshes_of(capture),
        partition_count(capture),
        _partitioning(capture.stage("hlo-before"), capture.stage("hlo-spmd")),
        _is_differentiated(capture),
        devices_of(capture.subject),
    )
    return _collectives(stage, setting, jaxpr_of(capture), capture.stage("stablehlo"))


def _estimated(stage: Stage, capture: Capture) -> tuple[Collective, ...]:
    found = collectives_of(stage, capture)
    machine = machine_of(capture.subject)
    return found if machine is None else _with_estimates(found, machine)


@lru_cache(maxsize=8)
def _with_estimates(found: tuple[Collective, ...], machine: Machine) -> tuple[Collective, ...]:
    return tuple(with_estimates(found, machine))


def _cost(capture: Capture) -> FunctionCost | None:
    stage, machine = capture.stage("hlo"), machine_of(capture.subject)
    if stage is None or machine is None:
        return None
    return _cost_of_stage(stage, _estimated(stage, capture), machine)


@lru_cache(maxsize=8)
def _cost_of_stage(stage: Stage, collectives: tuple[Collective, ...], machine: Machine) -> FunctionCost | None:
    module = read(stage)
    return cost_of(module, collectives, machine) if isinstance(module, HloModule) else None


@lru_cache(maxsize=16)
def _collectives(
    stage: Stage, setting: Setting, jaxpr: JaxprText | None, stablehlo: Stage | None
) -> tuple[Collective, ...]:
    """The collectives of one stage. A capture grows stage by stage, and those that are there do not change."""
    match read(stage):
        case HloModule() as module:
            found = hlo_collectives(stage.name, module, setting)
            found = found if stablehlo is None else tuple(with_stacks(found, stage, stablehlo))
        case MlirModule() as module:
            found = stablehlo_collectives(stage.name, module, setting)
        case JaxprText() | Problem():
            found = ()
    return found if jaxpr is None else tuple(with_jaxpr_sources(found, jaxpr))


@lru_cache(maxsize=16)
def _partitioning(before: Stage | None, after: Stage | None) -> Partitioning | None:
    if before is None or after is None:
        return None
    match read(before), read(after):
        case HloModule() as went_in, HloModule() as came_out:
            return partitioning_of(went_in, came_out)
    return None


def _is_differentiated(capture: Capture) -> bool:
    """Whether anything in the program comes from a transposition: JAX names it so in every stage."""
    return any(map(_holds_transposed, capture.stages))


@lru_cache(maxsize=32)
def _holds_transposed(stage: Stage) -> bool:
    return b"transpose(jvp" in stage.source.data
