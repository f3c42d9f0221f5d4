"""The collectives of a StableHLO module: those that the user's program asks for itself."""

from __future__ import annotations

from ...parsers.errors import readable
from ...parsers.mlir import MlirModule, Operation, UnknownLoc, frames, function_around, names
from ..catalog.spellings import KIND_OF, STABLEHLO_OPS
from ..ir import mlir_types
from ..loops.stablehlo_executions import StablehloExecutions
from ..report import Collective, SourcePosition
from .named_axes import named_axes
from .op_name import direction_of
from .setting import Setting

REDUCTIONS = {
    "stablehlo.add": "sum",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.multiply": "product",
    "stablehlo.and": "and",
    "stablehlo.or": "or",
    "stablehlo.xor": "xor",
}


def stablehlo_collectives(stage: str, module: MlirModule, setting: Setting) -> tuple[Collective, ...]:
    """Every collective of a module, in text order."""
    executions = StablehloExecutions(module)
    return tuple(_collective(stage, operation, setting, executions) for operation in module.operations(STABLEHLO_OPS))


def _collective(stage: str, operation: Operation, setting: Setting, executions: StablehloExecutions) -> Collective:
    kind = STABLEHLO_OPS[operation.name]
    spelled = readable(lambda: operation.replica_groups)
    groups = () if spelled is None else spelled.devices(setting.partitions)
    pairs = readable(lambda: operation.source_target_pairs) or ()
    operands = readable(lambda: operation.operand_types) or ()
    results = readable(lambda: operation.result_types) or ()
    bytes_in, bytes_out = mlir_types.size(operands), mlir_types.size(results)
    function = function_around(operation)
    location = readable(lambda: operation.location) or UnknownLoc()
    stack = frames(location)
    op_name = next(iter(names(location)), "").rstrip(":") or None
    runs = executions.of(operation)
    return Collective(
        stage=stage,
        kind=kind,
        name=operation.results[0] if operation.results else operation.name,
        computation=function.name if function is not None else "",
        span=operation.span,
        axes=named_axes(spelled, groups, pairs, setting.meshes),
        groups=groups,
        pairs=pairs,
        operand_types=tuple(map(mlir_types.short, operands)),
        result_types=tuple(map(mlir_types.short, results)),
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        wire_bytes=KIND_OF[kind].wire_bytes(max(map(len, groups), default=2), bytes_in, bytes_out),
        executions=runs.count,
        is_async=False,
        origin="user",
        direction=direction_of(op_name, differentiated=setting.differentiated),
        source=SourcePosition(stack, "exact" if stack else "none"),
        reduction=_reduction(operation),
        channel_id=readable(lambda: operation.channel),
        op_name=op_name,
        loops=runs.loops,
    )


def _reduction(operation: Operation) -> str | None:
    inside = [inner.name for region in operation.regions for block in region.blocks for inner in block.operations]
    return REDUCTIONS.get(inside[0]) if inside else None
