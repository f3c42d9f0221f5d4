"""The collectives of a StableHLO module: those that the user's program asks for itself."""

from __future__ import annotations

from ...parsers.errors import readable
from ...parsers.mlir import MlirModule, Operation, frames, function_around, names
from ..catalog.spellings import KIND_OF, Kind
from ..execution_counts.stablehlo_executions import StablehloExecutions
from ..ir.languages.mlir import location_of
from ..ir.stage import ParsedStage
from ..ir.types import array_type, size
from ..links.operation_ids import tags_at
from ..report import Collective, SourcePosition
from .context import AnalysisContext
from .hlo import REDUCTIONS
from .operations import collective_operations, facts_of
from .origin import direction_of, written_by
from .participants import GroupsOfModule, Participants
from .shardy import groups_along_axes, is_of_shardy, local_types


def stablehlo_collectives(stage: ParsedStage, module: MlirModule, context: AnalysisContext) -> tuple[Collective, ...]:
    """Every collective of a module, in text order."""
    executions = StablehloExecutions(module)
    written = GroupsOfModule(context.partitions)
    found = collective_operations(module)
    return tuple(_collective(stage, module, operation, kind, written, context, executions) for operation, kind in found)


def _collective(
    stage: ParsedStage,
    module: MlirModule,
    operation: Operation,
    kind: Kind,
    written: GroupsOfModule,
    context: AnalysisContext,
    executions: StablehloExecutions,
) -> Collective:
    of_shardy = is_of_shardy(operation)
    spelled = groups_along_axes(operation, module) if of_shardy else readable(lambda: operation.replica_groups)
    groups = written.of(spelled)
    pairs = readable(lambda: operation.source_target_pairs) or ()
    participants = Participants(spelled, groups, pairs)
    operands = readable(lambda: operation.operand_types) or ()
    if KIND_OF[kind].sides == "apart":
        operands = operands[:1]  # the others say where it goes
    results = readable(lambda: operation.result_types) or ()
    bytes_in, bytes_out = size(operands), size(results)
    taken, given = tuple(map(array_type, operands)), tuple(map(array_type, results))
    if of_shardy:
        taken, given = local_types(operation, module)
        bytes_in, bytes_out = (next((type.bytes for type in side), None) for side in (taken, given))
    function = function_around(operation)
    location = location_of(operation)
    op_name = next(iter(names(location)), "").rstrip(":") or None
    runs = executions.of(operation)
    numbers = tags_at(stage, stage.source.line_around(operation.span.end - 1))
    known = facts_of(context.lowered, numbers[0]) if numbers else None
    direction = direction_of(op_name, differentiated=context.differentiated)
    direction = direction if known is None or direction != "unknown" else known.direction
    return Collective(
        stage=stage.name,
        kind=kind,
        name=operation.results[0] if operation.results else operation.name,
        computation=function.name if function is not None else "",
        span=operation.span,
        axes=participants.axes(context.meshes),
        groups=groups,
        pairs=pairs,
        operand_types=taken,
        result_types=given,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        wire_bytes=KIND_OF[kind].wire_bytes(participants.group_size, bytes_in, bytes_out),
        executions=runs.count,
        most_executions=runs.most,
        is_async=False,
        origin=written_by("user", direction) if known is None else known.origin,
        direction=direction,
        source=SourcePosition.exact(frames(location)),
        reduction=_reduction(operation),
        channel_id=readable(lambda: operation.channel),
        op_name=op_name,
        loops=runs.loops,
        module=() if known is None else known.module,
        argument=None if known is None else known.argument,
    )


def _reduction(operation: Operation) -> str | None:
    inside = [inner.name for region in operation.regions for block in region.blocks for inner in block.operations]
    return REDUCTIONS.get(inside[0].rpartition(".")[2]) if inside else None
