"""The values of a propagated module, and the ways that an axis can take from one to another.

Shardy moves axes between an operation's operands and results, and, where an operation has regions, along data-flow
edges: what a loop, a branch or a shard_map carries is one value under several names. Each such edge has
sources and a target.

Source: shardy/dialect/sdy/ir/data_flow_utils.cc and shardy/dialect/sdy/ir/op_interface.td.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from ...parsers.errors import ParseError
from ...parsers.mesh_syntax import AxisRef
from ...parsers.mlir import Function, MlirModule, Operation, Origins, PropagationStep, Sharding, ValueRef
from ...parsers.mlir.lists import entries
from ...parsers.mlir.sdy_parser import parse_origins, parse_propagation
from ...parsers.mlir.value_rows import ValueRow, value_rows

_NAME = re.compile(rb"%[\w$.\-]+(?:#\d+)?")

_BY_ATTRIBUTE = frozenset({"sdy.sharding_constraint", "sdy.manual_computation", "sdy.reshard"})

Kind = Literal["argument", "result", "block", "output"]


@dataclass(frozen=True, slots=True)
class Node:
    """A value: number `index` of the arguments or outputs of the function, or of the results or the block arguments of
    the operation in row `row`. `region` is that of the block."""

    kind: Kind
    row: int
    index: int
    region: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """At a step of the propagation an axis went from one value of an operation to others.

    `row` is the operation's, or -1 where a function's result takes what is returned.
    """

    step: int
    axis: AxisRef
    source: Node
    targets: tuple[Node, ...]
    row: int


class Dataflow:
    """The main function of a module with what Shardy recorded of its propagation. Everything is read when asked for."""

    def __init__(self, module: MlirModule, function: Function) -> None:
        self.module = module
        self.text = function.operation.text
        self.function = function
        self._moves: dict[int, tuple[Move, ...]] = {}

    @cached_property
    def rows(self) -> Sequence[ValueRow]:
        """Its operations in text order."""
        return value_rows(self.function)

    def has(self, operation: str) -> bool:
        """Whether there may be operations of a name: a look at the text, which is much less work than `rows`."""
        return self.text.source.data.find(operation.encode(), self.function.span.start, self.function.span.end) >= 0

    @cached_property
    def arguments(self) -> Mapping[str, int]:
        """The numbers of the function's arguments, by name."""
        return {argument.name: index for index, argument in enumerate(self.function.arguments)}

    @cached_property
    def _starts(self) -> list[int]:
        return [row.start for row in self.rows]

    def row_at(self, offset: int) -> int | None:
        """The number of the innermost row whose operation holds an offset."""
        index = bisect_right(self._starts, offset) - 1
        while index >= 0 and offset >= self.rows[index].own[-1].end:
            index -= 1
        return index if index >= 0 else None

    @lru_cache(maxsize=1024)  # noqa: B019
    def operation(self, row: int) -> Operation:
        """The operation of a row."""
        found = self.rows[row]
        return Operation(self.text, type(found.own[0])(found.start, found.own[-1].end), found.nest)

    @cached_property
    def _names(self) -> Mapping[str, tuple[tuple[int, Node], ...]]:
        """The values of each name with the region that it is known in; -1 for the function's own."""
        found: dict[str, list[tuple[int, Node]]] = {}
        for name, index in self.arguments.items():
            found.setdefault(name, []).append((-1, Node("argument", -1, index)))
        for number, row in enumerate(self.rows):
            for index, name in enumerate(row.results):
                found.setdefault(name, []).append((row.regions[-1], Node("result", number, index)))
            if row.nest is not None:
                for region, block in enumerate(self._blocks(number)):
                    for index, name in enumerate(block):
                        # What a loop carries is one value: its result, and the argument of its condition and body.
                        carried = Node("result", number, index)
                        inside = carried if row.name.endswith("while") else Node("block", number, index, region)
                        found.setdefault(name, []).append((self._region(number, region), inside))
        return {name: tuple(values) for name, values in found.items()}

    def names(self, node: Node) -> tuple[str, ...]:
        """The names of a value: what a loop carries has one outside of it and one inside."""
        if node.kind == "argument":
            return (self.function.arguments[node.index].name,)
        if node.kind == "output":
            return ()
        blocks = self._blocks(node.row) if self.rows[node.row].nest is not None else []
        if node.kind == "block":
            return (blocks[node.region][node.index],)
        inside = blocks if self.rows[node.row].name.endswith("while") else []
        return tuple(dict.fromkeys((self.rows[node.row].results[node.index], *(block[node.index] for block in inside))))

    def node(self, name: str, row: int) -> Node | None:
        """What a name means in the operation of a row."""
        around = (-1, *self.rows[row].regions)
        known = [(around.index(region), node) for region, node in self._names.get(name, ()) if region in around]
        return max(known, key=lambda each: each[0])[1] if known else None

    @cached_property
    def _regions_of(self) -> Mapping[int, list[int]]:
        """For each row with regions the numbers of these."""
        inside: dict[int, list[int]] = {}
        parents: dict[int, int] = {}
        for number, row in enumerate(self.rows):
            for region in row.regions:
                if region not in parents:
                    parents[region] = self._parent(number, row.regions.index(region))
                    inside.setdefault(parents[region], []).append(region)
        return inside

    @cached_property
    def _owners(self) -> Mapping[int, tuple[int, bool]]:
        """For each region the row that it is in, and whether it is the last one there."""
        return {region: (row, region == regions[-1]) for row, regions in self._regions_of.items() for region in regions}

    def carried_by(self, row: int) -> int | None:
        """The loop that goes on with what is returned in a row; None for any other row."""
        regions = self.rows[row].regions
        owner, is_last = self._owners.get(regions[-1], (-1, False)) if regions else (-1, False)
        is_return = not self.rows[row].results and self._last_in.get(regions[-1] if regions else -1) == row
        return owner if is_return and is_last and owner >= 0 and self.rows[owner].name.endswith("while") else None

    def _parent(self, row: int, depth: int) -> int:
        """The row of the operation whose region is around a row, at a depth."""
        start = self.rows[row].start
        for number in range(row - 1, -1, -1):
            above = self.rows[number]
            if above.nest is not None and len(above.regions) == depth and above.own[-1].end > start:
                return number
        return -1

    def _region(self, row: int, region: int) -> int:
        numbers = self._regions_of.get(row, [])
        return numbers[region] if region < len(numbers) else -2

    def _blocks(self, row: int) -> list[tuple[str, ...]]:
        """The names of the arguments of each region's first block."""
        try:
            return [
                tuple(argument.name for argument in region.blocks[0].arguments) if region.blocks else ()
                for region in self.operation(row).regions
            ]
        except ParseError:
            return []

    def operands(self, row: int) -> tuple[Node | None, ...]:
        """The operands of an operation."""
        try:
            return tuple(self.node(name, row) for name in self.operation(row).operands)
        except ParseError:
            return ()

    @cached_property
    def returned(self) -> tuple[Node | None, ...]:
        """What the function returns."""
        last = len(self.rows) - 1
        return self.operands(last) if last >= 0 and not self.rows[last].results else ()

    def moves_to(self, node: Node) -> Iterator[Move]:
        """The moves that brought an axis to a value."""
        rows = {node.row} if node.kind in ("result", "block") else set()
        for name in self.names(node):
            rows.update(self._mentions.get(name, ()))
        if node.kind == "output" or node in self.returned:
            rows.add(-1)
        for row in sorted(rows):
            yield from (move for move in self.moves(row) if node in move.targets)

    @cached_property
    def _moving(self) -> tuple[int, ...]:
        """The rows whose operations Shardy moved something at."""
        data = self.text.source.data
        return tuple(
            number
            for number, row in enumerate(self.rows)
            if any(data.find(b"propagation_edges", piece.start, piece.end) >= 0 for piece in row.own)
        )

    @cached_property
    def _mentions(self) -> Mapping[str, tuple[int, ...]]:
        """The same rows by the names of values in their text, and in what their regions return."""
        found: dict[str, list[int]] = {}
        for number in self._moving:
            last = [self._last_in[region] for region in self._regions_of.get(number, []) if region in self._last_in]
            for row in (number, *last):
                piece = self.rows[row].own[0]
                for name in set(_NAME.findall(self.text.source.data, piece.start, piece.end)):
                    found.setdefault(name.decode(), []).append(number)
        return {name: tuple(rows) for name, rows in found.items()}

    def users(self, node: Node) -> tuple[int, ...]:
        """The operations that a value goes into."""
        rows = {row for name in self.names(node) for row in self._uses.get(name, ())}
        return tuple(row for row in sorted(rows) if node in self.operands(row))

    @cached_property
    def _uses(self) -> Mapping[str, tuple[int, ...]]:
        """The rows by the names of values in their text."""
        found: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            for name in set(_NAME.findall(self.text.source.data, row.own[0].start, row.own[0].end)):
                found.setdefault(name.decode(), []).append(number)
        return {name: tuple(rows) for name, rows in found.items()}

    @cached_property
    def all_moves(self) -> tuple[Move, ...]:
        """Every move of the propagation, in its order."""
        return tuple(
            sorted((move for row in (-1, *self._moving) for move in self.moves(row)), key=lambda move: move.step)
        )

    def moves(self, row: int) -> tuple[Move, ...]:
        """The moves at an operation; at the function's end for -1."""
        if row not in self._moves:
            self._moves[row] = tuple(self._of_results() if row < 0 else self._of_operation(row))
        return self._moves[row]

    def _of_results(self) -> Iterator[Move]:
        for index, result in enumerate(self.function.results):
            node = Node("output", -1, index)
            given = self.returned[index] if index < len(self.returned) else None
            try:
                steps = result.annotations.propagation or ()
            except ParseError:
                continue
            yield from _resolved(steps, (given,), (node,), -1)

    def _of_operation(self, row: int) -> Iterator[Move]:
        operation = self.operation(row)
        try:
            steps = operation.annotations.propagation
            attributes = operation.attributes
        except ParseError:
            return
        if steps:
            results = tuple(Node("result", row, index) for index in range(len(self.rows[row].results)))
            yield from _resolved(steps, self.operands(row), results, row)
        for side in ("result", "block_arg"):
            written = attributes.get(f"shardscope.{side}_propagation_edges")
            if written:
                for number, edge in entries(written).items():
                    yield from self._along_edge(row, side, int(re.sub(r"\D", "", number) or 0), edge)

    def _along_edge(self, row: int, side: str, index: int, written: str) -> Iterator[Move]:
        try:
            steps = parse_propagation(written)
        except ParseError:
            return
        sources, target = self.edge(row, side, index)
        yield from _resolved(steps, sources, (target,), row)

    def edge(self, row: int, side: str, index: int) -> tuple[tuple[Node | None, ...], Node]:
        """The sources and the target of one of the data-flow edges of an operation."""
        name = self.rows[row].name
        operands = self.operands(row)
        given = (operands[index] if index < len(operands) else None,)
        if side == "block_arg":
            return given, Node("block", row, index, 0)
        returned = self._returned_in(row)
        ends = tuple(each[index] if index < len(each) else None for each in returned)
        owner = Node("result", row, index)
        if name.endswith("while"):
            return (*given, *ends[-1:]), owner
        if name.endswith("optimization_barrier"):
            return given, owner
        return ends, owner

    def _returned_in(self, row: int) -> list[tuple[Node | None, ...]]:
        """What each region of an operation returns."""
        return [
            self.operands(self._last_in[region]) for region in self._regions_of.get(row, []) if region in self._last_in
        ]

    @cached_property
    def _last_in(self) -> Mapping[int, int]:
        return {row.regions[-1]: number for number, row in enumerate(self.rows)}

    def origin_name(self, row: int) -> str | None:
        """The name by which origins refer to a constraint or a shard_map."""
        try:
            return self.operation(row).annotations.origin_name
        except ParseError:
            return None

    def sharding(self, node: Node) -> Sharding | None:
        """The sharding of a value after propagation; None where nothing is said, which means replicated."""
        try:
            match node.kind:
                case "argument":
                    return self.function.arguments[node.index].annotations.sharding
                case "output":
                    return self.function.results[node.index].annotations.sharding
                case "block":
                    listed = self.operation(node.row).annotations.in_shardings or ()
                case "result":
                    listed = self.shardings(node.row)
        except ParseError:
            return None
        return listed[node.index] if node.index < len(listed) else None

    def shardings(self, row: int) -> tuple[Sharding, ...]:
        """The shardings of an operation's results; constraints and shard_maps have them in attributes of their own."""
        found = self.rows[row]
        if found.shardings is not None or found.name not in _BY_ATTRIBUTE:
            return found.shardings or ()
        annotations = self.operation(row).annotations
        try:
            if found.name == "sdy.manual_computation":
                return annotations.out_shardings or ()
            return () if annotations.target is None else (annotations.target,)
        except ParseError:
            return ()

    def origins(self, node: Node) -> Origins:
        """Where the axes of a value come from, as Shardy says."""
        try:
            match node.kind:
                case "argument":
                    found = _one(self.function.arguments[node.index].attributes)
                case "output":
                    found = _one(self.function.results[node.index].attributes)
                case "block" if not self.rows[node.row].name.endswith("manual_computation"):
                    found = self._listed(self.operation(node.row).annotations.origins, node.index)
                case "block":
                    found = self._listed(self.operation(node.row).annotations.block_argument_origins, node.index)
                case "result":
                    found = self._listed(self.operation(node.row).annotations.origins, node.index)
        except ParseError:
            return ()
        return found

    def _listed(self, listed: tuple[Origins, ...] | None, index: int) -> Origins:
        return listed[index] if listed is not None and index < len(listed) else ()


def _one(attributes: Mapping[str, str]) -> Origins:
    written = attributes.get("sdy.sharding_origins")
    return () if written is None else parse_origins(written)


def _resolved(
    steps: Sequence[PropagationStep], operands: Sequence[Node | None], results: Sequence[Node], row: int
) -> Iterator[Move]:
    def found(ref: ValueRef) -> Node | None:
        side: Sequence[Node | None] = operands if ref.kind == "operand" else results
        return side[ref.index] if ref.index < len(side) else None

    for step in steps:
        for edge in step.edges:
            source = found(edge.source)
            targets = tuple(node for ref in edge.targets if (node := found(ref)) is not None)
            if source is not None and targets:
                yield Move(step.index, edge.axis, source, targets, row)


@lru_cache(maxsize=8)
def dataflow_of(module: MlirModule) -> Dataflow | None:
    """The dataflow of the function that a module starts with; None if it has none."""
    function = module.function("main") or next(iter(module.functions), None)
    return None if function is None else Dataflow(module, function)
