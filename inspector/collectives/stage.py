"""The collectives in any stage of a program."""

from __future__ import annotations

from ..ir.derived import derived
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..report import Collective
from .context import AnalysisContext
from .hlo import hlo_collectives
from .jaxpr_sources import with_jaxpr_sources
from .origin import Partitioning, partitioning_of
from .stablehlo import stablehlo_collectives
from .stacks import with_stacks


def collectives_of(program: Program, stage: ParsedStage) -> tuple[Collective, ...]:
    """The collectives of a stage, in text order."""
    return collectives_in_context(stage, context_of(program))


@derived
def collectives_in_context(stage: ParsedStage, context: AnalysisContext) -> tuple[Collective, ...]:
    """The same by what the rest of the program says: while a capture grows, that changes seldom."""
    found: tuple[Collective, ...] = ()
    if stage.hlo is not None:
        found = hlo_collectives(stage.name, stage.hlo, context)
        found = found if context.stablehlo is None else tuple(with_stacks(found, stage, context.stablehlo))
    elif stage.mlir is not None:
        found = stablehlo_collectives(stage.name, stage.mlir, context)
    text = None if context.jaxpr is None else context.jaxpr.jaxpr
    return found if text is None else tuple(with_jaxpr_sources(found, text))


@derived
def context_of(program: Program) -> AnalysisContext:
    """What the rest of a program says about the collectives of any of its stages."""
    before, after = program.stage("hlo-before"), program.stage("hlo-spmd")
    return AnalysisContext(
        program.meshes,
        program.partitions,
        None if before is None or after is None else _partitioning(after, before),
        any(map(_holds_transposed, program.stages)),
        program.devices,
        program.stage("jaxpr"),
        program.stage("stablehlo"),
    )


@derived
def _partitioning(after: ParsedStage, before: ParsedStage) -> Partitioning | None:
    return None if before.hlo is None or after.hlo is None else partitioning_of(before.hlo, after.hlo)


@derived
def _holds_transposed(stage: ParsedStage) -> bool:
    """Whether anything in a stage comes from a transposition: JAX names it so in every one."""
    return b"transpose(jvp" in stage.source.data
