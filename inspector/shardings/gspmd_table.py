"""The values of a program without Shardy: how GSPMD's attributes say that they are sharded.

HLO in front of the partitioner has them after propagation, `sharding={devices=[4,1]<=[4]}`; what the user requested
stands in the StableHLO, as `mhlo.sharding` of arguments, results and `custom_call @Sharding`. They name no axes: these
are found from the tiles where a mesh is known, and else the attribute is shown as it is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ...parsers.errors import ParseError, readable
from ...parsers.hlo import Instruction
from ...parsers.hlo.fields import number as number_of
from ...parsers.hlo.types import leaves
from ...parsers.mlir import Operation, Parameter, UnknownLoc, frames, names
from ...parsers.mlir.lists import unquote
from ...parsers.record import Record
from ...parsers.sharding_syntax import gspmd
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ...parsers.source import Span
from ..capture.model import Value
from ..ir.array_sharding import ArraySharding
from ..ir.derived import derived
from ..ir.meshes import KeyedMeshes
from ..ir.placement import ANONYMOUS
from ..ir.program import Program
from ..ir.sharding_spellings import as_gspmd, from_gspmd
from ..ir.stage import ParsedStage
from ..ir.types import ArrayType, array_type
from ..report import Role, ShardedValue, SourcePosition
from .requested import Layout, layout_of, requested_sharding

STAGE = "hlo-before"
SILENT = frozenset({"parameter", "tuple", "get-tuple-element", "constant", "bitcast"})
"""Instructions that are listed elsewhere, or whose results nobody asks about."""

MAX_DEVICES = 16
"""Devices of a sharding that are spelled out."""


def gspmd_borders(program: Program) -> tuple[ShardedValue, ...]:
    """Arguments, outputs and constraints."""
    hlo, stablehlo = program.stage(STAGE), program.stage("stablehlo")
    known = _known(program)
    rows = _of_hlo(hlo, known) if hlo is not None and _has_shardings(hlo) else None
    if stablehlo is None or b"mhlo.sharding" not in stablehlo.source.data:
        return rows or ()
    if rows is not None:
        return (*rows, *_of_stablehlo(stablehlo, known, only_constraints=True))
    # Before propagation nothing can differ from what is requested.
    return tuple(replace(row, agrees=None) for row in _of_stablehlo(stablehlo, known, only_constraints=False))


def gspmd_values(program: Program) -> tuple[ShardedValue, ...]:
    """The results of all other instructions that say how they are sharded, in text order."""
    stage = program.stage(STAGE)
    return () if stage is None or not _has_shardings(stage) else _values(stage, _known(program))


def _has_shardings(stage: ParsedStage) -> bool:
    return b"sharding=" in stage.source.data


class _Known(Record, frozen=True):
    """Context from the rest of a program: requested shardings, and the meshes whose axes may form the tiles."""

    arguments: tuple[Value, ...]
    outputs: tuple[Value, ...]
    meshes: tuple[MeshSyntax, ...]
    partitions: int
    keyed: KeyedMeshes

    def layout(self, type: ArrayType, sharding: gspmd.Sharding | None) -> Layout:
        """The layout on the first mesh whose axes form the tiles, else on one of devices."""
        shape = type.shape
        meant = None if sharding is None or shape is None else self._on_mesh(sharding, len(shape))
        return layout_of(type, meant, spelled)

    def requested(self, value: Value | None) -> ArraySharding | None:
        """The requested sharding of an argument or a result."""
        return None if value is None else requested_sharding(value, self.meshes, keyed=self.keyed)

    def _on_mesh(self, sharding: gspmd.Sharding, rank: int) -> ArraySharding | None:
        found = None
        for mesh in (*self.meshes, MeshSyntax(((f"{ANONYMOUS}0", max(self.partitions, 1)),))):
            try:
                found = from_gspmd(sharding, rank, mesh)
            except ValueError:
                return None
            if found.mesh in self.meshes:
                break
        return found


def _known(program: Program) -> _Known:
    meshes = tuple(mesh for mesh in program.meshes if mesh.size == program.partitions and mesh.axes)
    keyed = tuple((key, mesh) for key, mesh in program.keyed_meshes if mesh in meshes)
    return _Known(program.capture.arguments, program.capture.outputs, meshes, program.partitions, keyed)


@derived
def _of_hlo(stage: ParsedStage, known: _Known) -> tuple[ShardedValue, ...]:
    entry = None if stage.hlo is None else stage.hlo.entry
    if entry is None:
        return ()
    rows = []
    parameters = [each for each in entry.instructions if each.opcode == "parameter"]
    parameters.sort(key=lambda each: number_of(each.literal) or 0)
    by_path = {value.path: value for value in known.arguments}
    for each in parameters:
        name = each.op_name or each.name
        layouts = _layouts(each, known)
        for number, layout in enumerate(layouts):
            own = f"{name}[{number}]" if len(layouts) > 1 else name
            requested = known.requested(by_path.get(own))
            rows.append(
                layout.row(STAGE, "argument", f"%{each.name}", own, each.span, SourcePosition(), requested, (), spelled)
            )
    if entry.root is not None:
        layouts = _layouts(entry.root, known)
        for number, layout in enumerate(layouts):
            value = known.outputs[number] if len(known.outputs) == len(layouts) else None
            text, span, requested = f"result {number}", entry.root.span, known.requested(value)
            name = text if value is None else value.path
            rows.append(layout.row(STAGE, "output", text, name, span, SourcePosition(), requested, (), spelled))
    return tuple(rows)


@derived
def _values(stage: ParsedStage, known: _Known) -> tuple[ShardedValue, ...]:
    module = stage.hlo
    rows = []
    for each in (each for computation in module.computations for each in computation.instructions) if module else ():
        if each.opcode not in SILENT and "sharding" in each.attributes:
            name = each.op_name or each.opcode
            last = name.rpartition("/")[2].rstrip(":")
            place = SourcePosition.exact(each.frames)
            for layout in _layouts(each, known):
                rows.append(layout.row(STAGE, "value", f"%{each.name}", last, each.span, place, spelled=spelled))
    return tuple(rows)


def _layouts(instruction: Instruction, known: _Known) -> list[Layout]:
    """The layout of each element of a result; a sharding that is not written, or that cannot be read, is unknown."""
    types = list(map(array_type, leaves(instruction.type)))
    found = readable(lambda: instruction.sharding)
    each = (found,) * len(types)
    if isinstance(found, gspmd.TupleSharding):
        each = found.elements if len(found.elements) == len(types) else (None,) * len(types)
    return list(map(known.layout, types, each))


@derived
def _of_stablehlo(stage: ParsedStage, known: _Known, only_constraints: bool) -> tuple[ShardedValue, ...]:
    module = stage.mlir
    main = None if module is None else module.function("main") or next(iter(module.functions), None)
    if module is None or main is None:
        return ()
    rows: list[ShardedValue] = []
    if not only_constraints:
        span = Span(main.span.start, main.span.start + 1)
        by_path = {value.path: value for value in (*known.arguments, *known.outputs)}

        def row(parameter: Parameter, role: Role, text: str, name: str) -> ShardedValue:
            sharding = readable(lambda: parameter.annotations.gspmd_sharding)
            layout = known.layout(array_type(parameter.type), sharding)
            requested = known.requested(by_path.get(name))
            return layout.row(stage.name, role, text, name, span, SourcePosition(), requested, (), spelled)

        for argument in main.arguments:
            name = next(iter(names(readable(partial(getattr, argument, "location")) or UnknownLoc())), argument.name)
            rows.append(row(argument, "argument", argument.name, name))
        for number, result in enumerate(main.results):
            path = result.attributes.get("jax.result_info", "")
            name = (unquote(path) if path.startswith('"') else "") or f"result {number}"
            rows.append(row(result, "output", f"result {number}", name))
    for operation in module.operations({"stablehlo.custom_call"}):
        rows += _constraint(operation, stage.name, known)
    return tuple(rows)


def _constraint(operation: Operation, stage: str, known: _Known) -> Iterator[ShardedValue]:
    try:
        if operation.attributes.get("call_target_name") != "@Sharding":
            return
        (name, *_), (type, *_) = operation.results, operation.result_types
        place = SourcePosition.exact(frames(operation.location))
        path = names(operation.location)
    except (ParseError, ValueError):
        return
    called = path[0].rpartition("/")[2].rstrip(":") if path else "Sharding"
    layout = known.layout(array_type(type), readable(lambda: operation.annotations.gspmd_sharding))
    yield layout.row(stage, "constraint", name, called, operation.span, place, layout.sharding, (), spelled)


def spelled(sharding: ArraySharding) -> str:
    """JAX's spelling, or GSPMD's where the axes are nobody's."""
    written = as_gspmd(sharding)
    if not isinstance(written, gspmd.TiledSharding) or not sharding.mesh.axes[0][0].startswith(ANONYMOUS):
        return str(sharding)
    devices = ",".join(map(str, written.devices[:MAX_DEVICES])) + ("…" if len(written.devices) > MAX_DEVICES else "")
    last = f" last_tile_dims={{{', '.join(written.subgroups)}}}" if written.subgroups else ""
    return f"{{devices=[{','.join(map(str, written.tiles))}]{devices}{last}}}"
