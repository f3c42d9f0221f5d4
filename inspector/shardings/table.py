"""Every value of a propagated program with its sharding.

Arguments and outputs come first, then what the program says about shardings on the way (constraints, the specs of
shard_maps), then the result of every operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...parsers.errors import ParseError, readable
from ...parsers.mlir import MlirType, Operation, OtherType, Parameter
from ...parsers.mlir.sdy import Sharding
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ...parsers.source import Span
from ..capture.model import Message, Value, has_mesh
from ..catalog.spellings import MLIR_CALLS, SDY_REQUESTS
from ..correspondence.numbers import tag_of_location
from ..dataflow.mlir import Dataflow, Node, dataflow_of
from ..ir.array_sharding import ArraySharding
from ..ir.derived import derived
from ..ir.meshes import KeyedMeshes
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..ir.types import array_type
from ..report import PlacedMessage, Role, ShardedValue, SourcePosition
from ..units import plural
from .gspmd_table import gspmd_borders, gspmd_values
from .partitioner_input import differing
from .recorded import Places, array_sharding, sharding_at, shardings_at, shardings_of
from .requested import Layout, agrees, layout_of, requested_sharding
from .sharded_dimensions import placed_at

STAGE = "sdy"
PARTITIONER_INPUT = "hlo-before"
SILENT = frozenset({"sdy.constant", "stablehlo.constant", "stablehlo.return", "sdy.return", "return", "func.return"})
"""Operations whose results nobody asks about."""


def borders(program: Program) -> tuple[ShardedValue, ...]:
    """Arguments, outputs, constraints and the specs of shard_maps.

    Without a record of Shardy's it is what GSPMD says, and without that, what is written in StableHLO.
    """
    stage, flow = propagated(program)
    if stage is None or flow is None:
        found = gspmd_borders(program) if _has_no_shardy(program) else ()
        written = program.stage("stablehlo")
        is_written = written is not None and has_mesh(written.source.data) and program.capture.complete
        return found if found or written is None or not is_written else _as_written(written)
    capture = program.capture
    stablehlo = program.stage("stablehlo")
    return _borders(flow, stage, capture.arguments, capture.outputs, program.meshes, program.keyed_meshes, stablehlo)


def values(program: Program) -> tuple[ShardedValue, ...]:
    """The result of every operation, in text order."""
    _, flow = propagated(program)
    if flow is None:
        return gspmd_values(program) if _has_no_shardy(program) else ()
    return _values(flow)


def _has_no_shardy(program: Program) -> bool:
    stablehlo = program.stage("stablehlo")
    return program.capture.complete or (stablehlo is not None and not has_mesh(stablehlo.source.data))


def propagated(program: Program) -> tuple[ParsedStage | None, Dataflow | None]:
    """The stage that holds the shardings after propagation, and the dataflow in it, with what XLA made of them."""
    stage, before = program.stage(STAGE), program.stage(PARTITIONER_INPUT)
    return stage, None if stage is None else _flow(stage, before)


def differing_from_xla(program: Program) -> tuple[PlacedMessage, ...]:
    """A message where the stage's text is not what XLA's own propagation ended with: the tables follow XLA."""
    _, flow = propagated(program)
    if flow is None or not flow.differing:
        return ()
    text = (
        f"the sdy stage propagates over the StableHLO; XLA simplifies the program first, and shards "
        f"{plural(len(flow.differing), 'value')} differently: all tables show XLA's shardings"
    )
    return (PlacedMessage(Message("info", text, "propagation"), ""),)


@derived
def _flow(stage: ParsedStage, before: ParsedStage | None) -> Dataflow | None:
    flow = dataflow_of(stage)
    found = {} if flow is None or before is None else differing(stage, flow, before)
    return flow if flow is None or not found else flow.sharded_otherwise(found)


@derived
def _values(flow: Dataflow) -> tuple[ShardedValue, ...]:
    return tuple(_Maker(flow).values())


@derived
def _borders(
    flow: Dataflow,
    stage: ParsedStage,
    arguments: tuple[Value, ...],
    outputs: tuple[Value, ...],
    meshes: tuple[MeshSyntax, ...],
    keyed: KeyedMeshes,
    stablehlo: ParsedStage | None,
) -> tuple[ShardedValue, ...]:
    maker = _Maker(flow, meshes, keyed)
    return (
        *maker.boundary(arguments, outputs),
        *maker.constraints(stage, stablehlo),
        *maker.shard_maps(),
    )


@derived
def _as_written(stage: ParsedStage) -> tuple[ShardedValue, ...]:
    """Shardings as StableHLO requests them; the actual ones need propagation."""
    flow = dataflow_of(stage)
    if flow is None:
        return ()
    maker = _Maker(flow)
    rows = []
    for value in (*maker.boundary((), ()), *maker.constraints(stage, None), *maker.shard_maps()):
        node = node_of(flow, value) if value.role in ("argument", "output") else None
        is_open = node is not None and sharding_at(flow, node) is None
        requested = None if is_open else value.requested or value.spec
        unknown = replace(value, local_type=None, sharding=None, spec=None, agrees=None, replicated_bytes=None)
        rows.append(replace(unknown, stage=stage.name, requested=requested))
    return tuple(rows)


def node_of(flow: Dataflow, value: ShardedValue) -> Node | None:
    """The value of the program that a row of the table is about."""
    if value.role == "argument":
        return Node("argument", -1, flow.arguments[value.value])
    if value.role == "output":
        return Node("output", -1, flow.outputs.index(value.value))
    row = flow.row_at(value.span.start)
    return None if row is None else flow.node(value.value, row)


class _Maker:
    """Makes rows. Equal types, shardings and locations are looked at once."""

    def __init__(self, flow: Dataflow, meshes: tuple[MeshSyntax, ...] = (), keyed: KeyedMeshes = ()) -> None:
        self.flow = flow
        self.keyed = keyed
        self.meshes = (*(mesh for mesh in flow.module.meshes.values() if mesh.axes), *meshes)
        self._layouts: dict[object, Layout] = {}
        self.places = Places(flow)

    def boundary(self, arguments: tuple[Value, ...], outputs: tuple[Value, ...]) -> Iterator[ShardedValue]:
        """The function's arguments and results, by their paths in the pytree."""
        function, places = self.flow.function, self.places
        requested, returned = ({value.path: value for value in values} for values in (arguments, outputs))
        span = Span(function.span.start, function.span.start + 1)
        for number, argument in enumerate(function.arguments):
            node, name = Node("argument", -1, number), places.argument(number)
            yield self._parameter(node, argument, argument.name, name, span, requested.get(name))
        for number, (text, result) in enumerate(zip(self.flow.outputs, function.results, strict=True)):
            node, name = Node("output", -1, number), places.output(number)
            yield self._parameter(node, result, text, name, span, returned.get(name))

    def _parameter(
        self, node: Node, parameter: Parameter, text: str, name: str, span: Span, value: Value | None
    ) -> ShardedValue:
        role: Role = "argument" if node.kind == "argument" else "output"
        type = readable(lambda: parameter.type) or OtherType(parameter.type_text)
        actual = placed_at(self.flow, node)
        requested = None if value is None else requested_sharding(value, self.meshes, actual, self.keyed)
        return self._row(role, text, name, span, type, sharding_at(self.flow, node), (), SourcePosition(), requested)

    def constraints(self, stage: ParsedStage, before: ParsedStage | None) -> Iterator[ShardedValue]:
        """`with_sharding_constraint` and its like. Propagation fills in what they leave open, so it is read before."""
        found = self.flow.named(SDY_REQUESTS)
        written = _targets(before) if found else {}
        for number, (operation, manual) in enumerate(found):
            tag = _tag(stage, operation)
            target = written.get(number if tag is None else tag)
            # XLA makes one of each constraint, and of what it adds in front of loops, which nobody asked for.
            if operation.name == "sdy.reshard" and (tag is None or tag not in written):
                continue
            try:
                results, types, location = operation.results, operation.result_types, operation.statement.location
            except ParseError:
                continue
            row = flow.row_at(operation.span.start) if (flow := self.flow).differing else None
            own = next(iter(shardings_of(operation)), None)
            actual = own if row is None else next(iter(shardings_at(flow, row)), None)
            name, place = self.places.at(location)
            propagated, requested = (array_sharding(flow, each, manual, rank=0) for each in (own, target or own))
            # A constraint has what it asks for: what has not is another one, which XLA made one with its neighbour.
            if requested is not None and propagated is not None and not agrees(requested, propagated):
                requested = propagated
            # JAX puts constraints that leave everything open behind each operation in a partly automatic shard_map.
            if requested is None or any(dim.axes or not dim.is_open for dim in requested.dims):
                yield self._row(
                    "constraint", results[0], name, operation.span, types[0], actual, manual, place, requested
                )

    def shard_maps(self) -> Iterator[ShardedValue]:
        """Shardings at shard_maps: required and actual ones of operands, and those of results."""
        if not self.flow.has("sdy.manual_computation"):
            return
        for number, row in enumerate(self.flow.rows):
            if row.name != "sdy.manual_computation":
                continue
            operation = self.flow.operation(number)
            try:
                wanted, given = operation.annotations.in_shardings or (), operation.annotations.out_shardings or ()
                types = operation.operand_types
            except ParseError:
                continue
            _, place = self.places.at(row.location)
            span = Span(row.start, row.own[-1].end)
            operands = zip(operation.operands, self.flow.operands(number), types, wanted, strict=False)
            for name, node, type, sharding in operands:
                requested = array_sharding(self.flow, sharding, row.manual, len(sharding.dims))
                actual = None if node is None else sharding_at(self.flow, node)
                yield self._row("shard_map input", name, "shard_map", span, type, actual, row.manual, place, requested)
            for name, type, sharding in zip(row.results, row.types, given, strict=False):
                yield self._row("shard_map output", name, "shard_map", span, type, sharding, row.manual, place, None)

    def values(self) -> Iterator[ShardedValue]:
        """The results of the operations."""
        for number, row in enumerate(self.flow.rows):
            if row.name in SILENT or not row.results:
                continue
            shardings = shardings_at(self.flow, number)
            name, place = self.places.at(row.location)
            span = Span(row.start, row.own[-1].end)
            for index, value in enumerate(row.results):
                type = row.types[index] if index < len(row.types) else None
                sharding = shardings[index] if index < len(shardings) else None
                if type is not None:
                    yield self._row("value", value, name or row.name, span, type, sharding, row.manual, place, None)

    def _row(
        self,
        role: Role,
        value: str,
        name: str,
        span: Span,
        type: MlirType,
        sharding: Sharding | None,
        manual: tuple[str, ...],
        place: SourcePosition,
        requested: ArraySharding | None,
    ) -> ShardedValue:
        key = (type, sharding, manual)
        if key not in self._layouts:
            array = array_type(type)
            rank = None if array.shape is None else len(array.shape)
            self._layouts[key] = layout_of(
                array, None if rank is None else array_sharding(self.flow, sharding, manual, rank)
            )
        return self._layouts[key].row(STAGE, role, value, name, span, place, requested, manual)


def _targets(before: ParsedStage | None) -> dict[int, Sharding | None]:
    """Requested shardings of the program's constraints, by the numbers of their operations.

    Without such numbers by their order, which only calls change: propagation has inlined those.
    """
    if before is None or before.mlir is None:
        return {}
    written = list(before.mlir.operations({"sdy.sharding_constraint"}))
    tags = [_tag(before, operation) for operation in written]
    if None in tags and any(before.mlir.operations(MLIR_CALLS)):
        return {}
    targets = map(_target, written)
    return {
        number if tag is None else tag: target for number, (tag, target) in enumerate(zip(tags, targets, strict=True))
    }


def _tag(stage: ParsedStage, operation: Operation) -> int | None:
    return tag_of_location(stage, readable(lambda: operation.statement.location))


def _target(constraint: Operation) -> Sharding | None:
    """The requested sharding of a constraint; an unreadable one is a problem of the text, and left out here."""
    return readable(lambda: constraint.annotations.target)
