"""The values of a program without Shardy: how GSPMD's attributes say that they are sharded.

HLO in front of the partitioner has them after propagation, `sharding={devices=[4,1]<=[4]}`; what the user asked for
stands in the StableHLO, as `mhlo.sharding` of arguments, results and `custom_call @Sharding`. They name no axes: these
are found from the tiles where a mesh is known, and else the attribute is shown as it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...parsers.errors import ParseError
from ...parsers.hlo import ArrayShape, HloType, Instruction
from ...parsers.mlir import Annotations, MlirType, Operation, TensorType, frames, names
from ...parsers.mlir.lists import unquote
from ...parsers.sharding_syntax import gspmd
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ...parsers.source import Span
from ..capture.model import Value
from ..ir.array_sharding import ArraySharding
from ..ir.derived import derived
from ..ir.hlo_types import dtype_name as hlo_dtype
from ..ir.hlo_types import leaves
from ..ir.hlo_types import short as hlo_short
from ..ir.mlir_types import dtype_name, short
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..report import Role, ShardedValue, SourcePosition
from ..units import bytes_of
from .requested import agrees, requested_sharding
from .spelled import as_gspmd, as_spec, from_gspmd
from .tiles import ANONYMOUS

STAGE = "hlo-before"
SILENT = frozenset({"parameter", "tuple", "get-tuple-element", "constant", "bitcast"})
"""Instructions that are listed elsewhere, or whose results nobody asks about."""

MOST_DEVICES = 16
"""Devices of a sharding that are spelled out."""

MARK = b"sharding="
WRITTEN = b"mhlo.sharding"


def gspmd_borders(program: Program) -> tuple[ShardedValue, ...]:
    """Arguments, outputs and constraints."""
    meshes, partitions = program.meshes, program.partitions
    hlo, stablehlo = _marked(program.stage(STAGE), MARK), _marked(program.stage("stablehlo"), WRITTEN)
    told = (program.capture.arguments, program.capture.outputs)
    return (
        *(_of_hlo(hlo, *told, meshes, partitions) if hlo is not None else ()),
        *(_of_stablehlo(stablehlo, *told, meshes, partitions, hlo is not None) if stablehlo is not None else ()),
    )


def gspmd_values(program: Program) -> tuple[ShardedValue, ...]:
    """The results of all other instructions that say how they are sharded, in text order."""
    stage = _marked(program.stage(STAGE), MARK)
    return () if stage is None else _values(stage, program.meshes, program.partitions)


def _marked(stage: ParsedStage | None, mark: bytes) -> ParsedStage | None:
    return stage if stage is not None and mark in stage.source.data else None


@derived
def _of_hlo(
    stage: ParsedStage,
    arguments: tuple[Value, ...],
    outputs: tuple[Value, ...],
    meshes: tuple[MeshSyntax, ...],
    partitions: int,
) -> tuple[ShardedValue, ...]:
    entry = None if stage.hlo is None else stage.hlo.entry
    if entry is None:
        return ()
    maker = _Maker(meshes, partitions)
    parameters = [each for each in entry.instructions if each.opcode == "parameter"]
    parameters.sort(key=lambda each: int(each.literal or 0) if (each.literal or "0").isdecimal() else 0)
    rows = list(_arguments(maker, parameters, {value.path: value for value in arguments}))
    root = entry.root
    if root is not None:
        types = tuple(leaves(root.type))
        for number, (type, sharding) in enumerate(zip(types, _shardings(root, len(types)), strict=True)):
            told = outputs[number] if len(outputs) == len(types) else None
            name = f"result {number}" if told is None else told.path
            rows.append(maker.row("output", f"result {number}", name, root.span, type, sharding, told))
    return tuple(rows)


def _arguments(maker: _Maker, parameters: Sequence[Instruction], told: dict[str, Value]) -> Iterator[ShardedValue]:
    for each in parameters:
        name = (each.metadata.op_name if each.metadata is not None else None) or each.name
        types = tuple(leaves(each.type))
        for number, (type, sharding) in enumerate(zip(types, _shardings(each, len(types)), strict=True)):
            own = f"{name}[{number}]" if len(types) > 1 else name
            yield maker.row("argument", f"%{each.name}", own, each.span, type, sharding, told.get(own))


@derived
def _values(stage: ParsedStage, meshes: tuple[MeshSyntax, ...], partitions: int) -> tuple[ShardedValue, ...]:
    module = stage.hlo
    if module is None:
        return ()
    maker = _Maker(meshes, partitions)
    return tuple(
        row for computation in module.computations for row in _of_instructions(maker, computation.instructions)
    )


def _of_instructions(maker: _Maker, instructions: Sequence[Instruction]) -> Iterator[ShardedValue]:
    for each in instructions:
        if each.opcode in SILENT or "sharding" not in each.attributes:
            continue
        types = tuple(leaves(each.type))
        name = (each.metadata.op_name if each.metadata is not None else None) or each.opcode
        place = SourcePosition(each.frames, "exact") if each.frames else SourcePosition()
        for type, sharding in zip(types, _shardings(each, len(types)), strict=True):
            last = name.rpartition("/")[2].rstrip(":")
            yield maker.row("value", f"%{each.name}", last, each.span, type, sharding, None, place)


def _shardings(instruction: Instruction, count: int) -> tuple[gspmd.Sharding | None, ...]:
    """The sharding of each element of a result; one that is not written, or that cannot be read, is None."""
    try:
        found = instruction.sharding
    except ParseError:
        found = None
    if isinstance(found, gspmd.TupleSharding):
        return found.elements if len(found.elements) == count else (None,) * count
    return (found,) * count


@derived
def _of_stablehlo(
    stage: ParsedStage,
    arguments: tuple[Value, ...],
    outputs: tuple[Value, ...],
    meshes: tuple[MeshSyntax, ...],
    partitions: int,
    only_constraints: bool,
) -> tuple[ShardedValue, ...]:
    module = stage.mlir
    main = None if module is None else module.function("main") or next(iter(module.functions), None)
    if module is None or main is None:
        return ()
    maker = _Maker(meshes, partitions, stage.name)
    rows: list[ShardedValue] = []
    if not only_constraints:
        span = Span(main.span.start, main.span.start + 1)
        by_path = {value.path: value for value in (*arguments, *outputs)}
        for argument in main.arguments:
            name = next(iter(names(argument.location)), argument.name)
            known, sharding = by_path.get(name), _written(argument.annotations)
            rows.append(maker.row("argument", argument.name, name, span, argument.type, sharding, known))
        for number, result in enumerate(main.results):
            path = result.attributes.get("jax.result_info", "")
            name = (unquote(path) if path.startswith('"') else "") or f"result {number}"
            known, sharding = by_path.get(name), _written(result.annotations)
            rows.append(maker.row("output", f"result {number}", name, span, result.type, sharding, known))
    for operation in module.operations({"stablehlo.custom_call"}):
        rows += _constraint(maker, operation)
    return tuple(rows)


def _constraint(maker: _Maker, operation: Operation) -> Iterator[ShardedValue]:
    try:
        if operation.attributes.get("call_target_name") != "@Sharding":
            return
        (name, *_), (type, *_) = operation.results, operation.result_types
        stack = frames(operation.location)
        known = names(operation.location)
    except (ParseError, ValueError):
        return
    place = SourcePosition(stack, "exact") if stack else SourcePosition()
    called = known[0].rpartition("/")[2].rstrip(":") if known else "Sharding"
    sharding = _written(operation.annotations)
    yield maker.row("constraint", name, called, operation.span, type, sharding, None, place, is_asked=True)


def _written(annotations: Annotations) -> gspmd.Sharding | None:
    try:
        return annotations.gspmd_sharding
    except ParseError:
        return None


class _Maker:
    """Makes rows, with the axes of the user's meshes where these form the tiles."""

    def __init__(self, meshes: Sequence[MeshSyntax], partitions: int, stage: str = STAGE) -> None:
        self.stage = stage
        self.meshes = [mesh for mesh in meshes if mesh.size == partitions and mesh.axes]
        self.devices = MeshSyntax(((f"{ANONYMOUS}0", max(partitions, 1)),))

    def row(
        self,
        role: Role,
        value: str,
        name: str,
        span: Span,
        type: HloType | MlirType,
        sharding: gspmd.Sharding | None,
        told: Value | None,
        place: SourcePosition | None = None,
        *,
        is_asked: bool = False,
    ) -> ShardedValue:
        """One value; `told` is what is known of an argument or a result."""
        printed, element, shape = _shape(type)
        got = None if sharding is None or shape is None else self.meaning(sharding, len(shape))
        local = None if got is None or shape is None else got.local_shape(shape)
        size = None if local is None else bytes_of(element, local)
        asked = got if is_asked else None if told is None else requested_sharding(told, self.meshes)
        return ShardedValue(
            stage=self.stage,
            role=role,
            value=value,
            name=name,
            span=span,
            type=printed,
            local_type=None if local is None else f"{element}[{','.join(map(str, local))}]",
            sharding=got,
            spec=None if got is None else spelled(got),
            asked=None if asked is None else spelled(asked),
            agrees=None if asked is None or got is None else agrees(asked, got),
            replicated_bytes=None if size is None or got is None else size - size // got.copies,
            source=place or SourcePosition(),
        )

    def meaning(self, sharding: gspmd.Sharding, rank: int) -> ArraySharding | None:
        """On the first mesh whose axes form it, else on one of devices; None for what tells nothing."""
        found = None
        for mesh in (*self.meshes, self.devices):
            try:
                found = from_gspmd(sharding, rank, mesh)
            except ValueError:
                return None
            if found.mesh in self.meshes:
                return found
        return found


def spelled(sharding: ArraySharding) -> str:
    """JAX's spelling, or GSPMD's where the axes are nobody's."""
    written = as_gspmd(sharding)
    if not isinstance(written, gspmd.TiledSharding) or not sharding.mesh.axes[0][0].startswith(ANONYMOUS):
        return as_spec(sharding)
    devices = ",".join(map(str, written.devices[:MOST_DEVICES])) + ("…" if len(written.devices) > MOST_DEVICES else "")
    last = f" last_tile_dims={{{', '.join(written.subgroups)}}}" if written.subgroups else ""
    return f"{{devices=[{','.join(map(str, written.tiles))}]{devices}{last}}}"


def _shape(type: HloType | MlirType) -> tuple[str, str, tuple[int, ...] | None]:
    match type:
        case ArrayShape(dtype, dims):
            return hlo_short(type), hlo_dtype(dtype), tuple(dims) if min(dims, default=0) >= 0 else None
        case TensorType(dims, element):
            shape = tuple(dim for dim in dims if dim is not None)
            return short(type), dtype_name(element), shape if len(shape) == len(dims) else None
    return str(type), "", None
