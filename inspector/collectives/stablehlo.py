"""The collectives of a StableHLO module: those that the user's program asks for itself."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...parsers.errors import readable
from ...parsers.mlir import MlirModule, Operation, frames, function_around, names
from ...parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from ...parsers.sharding_syntax.replica_groups import MeshGroups
from ..catalog.spellings import KIND_OF, REDUCTIONS, Kind
from ..correspondence.numbers import tags_at
from ..execution_counts.stablehlo_executions import StablehloExecutions
from ..ir.languages.mlir import location_of
from ..ir.stage import ParsedStage
from ..ir.types import ArrayType, array_type, size
from ..report import Collective, SourcePosition
from .context import AnalysisContext
from .operations import collective_operations, facts_of
from .origin import direction_of, written_by
from .participants import GroupsOfModule, Participants


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


def is_of_shardy(operation: Operation) -> bool:
    """Return whether an operation is `sdy.all_gather` or the like."""
    return operation.name.startswith("sdy.")


def groups_along_axes(operation: Operation, module: MlirModule) -> MeshGroups | None:
    """The groups along all axes that an operation names; None for a permutation, which names none."""
    mesh = _mesh(operation, module)
    reduced, of_dims, exchanges = (
        readable(lambda: operation.annotations.reduction_axes),
        readable(lambda: operation.annotations.axes_of_dims),
        readable(lambda: operation.annotations.exchanges),
    )
    lists = [reduced or (), *(of_dims or ()), *(each.axes for each in exchanges or ())]
    axes = tuple(axis for each in lists for axis in each)
    if mesh is None or not axes:
        return None
    try:
        return MeshGroups(mesh, axes)
    except ValueError:  # axes that the mesh does not have
        return None


def local_types(operation: Operation, module: MlirModule) -> tuple[tuple[ArrayType, ...], tuple[ArrayType, ...]]:
    """One device's part of the operand and of the result; nothing where the sharding is not of the mesh."""
    try:
        return _local_types(operation, module)
    except ValueError:
        return (), ()


def _local_types(operation: Operation, module: MlirModule) -> tuple[tuple[ArrayType, ...], tuple[ArrayType, ...]]:
    mesh, target = _mesh(operation, module), readable(lambda: operation.annotations.target)
    types = readable(lambda: operation.result_types) or ()
    result = array_type(types[0]) if types else None
    if (
        mesh is None
        or target is None
        or result is None
        or result.shape is None
        or len(target.dims) != len(result.shape)
    ):
        return (), ()
    after = [-(-size // _size(mesh, dim.axes)) for size, dim in zip(result.shape, target.dims, strict=True)]
    before = list(after)
    of_dims = readable(lambda: operation.annotations.axes_of_dims)
    for dim, axes in enumerate(of_dims or ()):
        times = _size(mesh, axes)
        before[dim] = after[dim] * times if operation.name == "sdy.reduce_scatter" else after[dim] // times
    for each in readable(lambda: operation.annotations.exchanges) or ():
        before[each.source] //= _size(mesh, each.axes)
        before[each.target] *= _size(mesh, each.axes)
    return (ArrayType(result.dtype, tuple(before)),), (ArrayType(result.dtype, tuple(after)),)


def _mesh(operation: Operation, module: MlirModule) -> MeshSyntax | None:
    target = readable(lambda: operation.annotations.target)
    name = None if target is None else target.mesh
    return name if isinstance(name, MeshSyntax) else module.meshes.get(name or "")


def _size(mesh: MeshSyntax, axes: Iterable[AxisRef]) -> int:
    return math.prod(map(mesh.axis_size, axes))
