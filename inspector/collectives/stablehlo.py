"""The collectives of a StableHLO module: those that the user's program asks for itself."""

from __future__ import annotations

from ...parsers.errors import readable
from ...parsers.mlir import MlirModule, Operation, UnknownLoc, frames, function_around, names
from ...parsers.mlir.lists import symbol
from ..catalog.spellings import CUSTOM_CALLS, KIND_OF, STABLEHLO_OPS, Kind
from ..execution_counts.stablehlo_executions import StablehloExecutions
from ..ir.types import array_type, size
from ..report import Collective, SourcePosition
from .context import AnalysisContext
from .hlo import REDUCTIONS
from .origin import direction_of
from .participants import Participants

CUSTOM_CALL = "stablehlo.custom_call"


def stablehlo_collectives(stage: str, module: MlirModule, context: AnalysisContext) -> tuple[Collective, ...]:
    """Every collective of a module, in text order."""
    executions = StablehloExecutions(module)
    calls = any(f"@{target}".encode() in module.source.data for target in CUSTOM_CALLS)
    searched = (*STABLEHLO_OPS, *([CUSTOM_CALL] if calls else []))
    found = ((operation, _kind(operation)) for operation in module.operations(searched))
    return tuple(_collective(stage, operation, kind, context, executions) for operation, kind in found if kind)


def _kind(operation: Operation) -> Kind | None:
    if operation.name != CUSTOM_CALL:
        return STABLEHLO_OPS[operation.name]
    target = readable(lambda: operation.attributes.get("call_target_name"))
    return None if target is None else CUSTOM_CALLS.get(symbol(target))


def _collective(
    stage: str, operation: Operation, kind: Kind, context: AnalysisContext, executions: StablehloExecutions
) -> Collective:
    spelled = readable(lambda: operation.replica_groups)
    groups = () if spelled is None else spelled.devices(context.partitions)
    pairs = readable(lambda: operation.source_target_pairs) or ()
    participants = Participants(spelled, groups, pairs)
    operands = readable(lambda: operation.operand_types) or ()
    if KIND_OF[kind].sides == "apart":
        operands = operands[:1]  # the others say where it goes
    results = readable(lambda: operation.result_types) or ()
    bytes_in, bytes_out = size(operands), size(results)
    function = function_around(operation)
    location = readable(lambda: operation.location) or UnknownLoc()
    op_name = next(iter(names(location)), "").rstrip(":") or None
    runs = executions.of(operation)
    return Collective(
        stage=stage,
        kind=kind,
        name=operation.results[0] if operation.results else operation.name,
        computation=function.name if function is not None else "",
        span=operation.span,
        axes=participants.axes(context.meshes),
        groups=groups,
        pairs=pairs,
        operand_types=tuple(map(array_type, operands)),
        result_types=tuple(map(array_type, results)),
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        wire_bytes=KIND_OF[kind].wire_bytes(participants.group_size, bytes_in, bytes_out),
        executions=runs.count,
        is_async=False,
        origin="user",
        direction=direction_of(op_name, differentiated=context.differentiated),
        source=SourcePosition.exact(frames(location)),
        reduction=_reduction(operation),
        channel_id=readable(lambda: operation.channel),
        op_name=op_name,
        loops=runs.loops,
    )


def _reduction(operation: Operation) -> str | None:
    inside = [inner.name for region in operation.regions for block in region.blocks for inner in block.operations]
    return REDUCTIONS.get(inside[0].removeprefix("stablehlo.")) if inside else None
