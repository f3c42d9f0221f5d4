"""The values of a propagated module: what each name means where it stands, and which operations use it.

What a loop carries is one value under several names; those of a branch's or a shard_map's region are values of their
own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TypeVar

from ...parsers.errors import ParseError, readable
from ...parsers.garbage import collection_paused
from ...parsers.mlir import Function, MlirModule, Operation, Sharding, UnknownLoc, frames, names
from ...parsers.mlir.rows import FunctionRows, ValueRow
from ...parsers.source import Frame
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from ..report.shardings import Node as Node

T = TypeVar("T")


class Dataflow:
    """The operations and values of a module's main function. Everything is read on first use."""

    def __init__(self, module: MlirModule, function: Function) -> None:
        self.module = module
        self.text = function.operation.text
        self.function = function
        self.differing: Mapping[Node, Sharding] = {}
        """Values that the compiler sharded otherwise than is written here, and how."""
        self.derived: dict[Hashable, object] = {}
        self._notes: dict[tuple[str, int], object] = {}
        self._locations: dict[str | None, tuple[tuple[str, ...], tuple[Frame, ...]]] = {}

    def sharded_otherwise(self, differing: Mapping[Node, Sharding]) -> Dataflow:
        """The same values, some of them with other shardings."""
        found = copy(self)
        found.differing, found.derived, found._notes = differing, {}, {}
        return found

    @cached_property
    def rows(self) -> Sequence[ValueRow]:
        """Its operations in text order."""
        return self.records.rows

    @cached_property
    def records(self) -> FunctionRows:
        """Records at the operations."""
        return FunctionRows(self.function)

    def names(self, row: int) -> tuple[str, ...]:
        """The names in the location of an operation; none where it cannot be read."""
        return self.located(self.rows[row].location)[0]

    def located(self, location: str | None) -> tuple[tuple[str, ...], tuple[Frame, ...]]:
        """The names and the call stack in a location. Equal ones are read once."""
        if location not in self._locations:
            read = readable(lambda: self.text.location(location)) or UnknownLoc()
            self._locations[location] = names(read), frames(read)
        return self._locations[location]

    def noted(self, what: tuple[str, int], make: Callable[[], T]) -> T:
        """Facts about a row, computed once."""
        if what not in self._notes:
            self._notes[what] = make()
        return self._notes[what]  # type: ignore[return-value]

    def has(self, operation: str) -> bool:
        """Return whether operations of a name may exist: a search of the text, much cheaper than `rows`."""
        return self.text.source.data.find(operation.encode(), self.function.span.start, self.function.span.end) >= 0

    def named(self, names: frozenset[str]) -> list[tuple[Operation, tuple[str, ...]]]:
        """The operations of some names, each with the mesh axes that are manual there."""
        if not any(map(self.has, names)):
            return []
        if self.has("sdy.manual_computation"):
            return [(self.records.operation(row), row.manual) for row in self.rows if row.name in names]
        # Without shard_maps it needs no rows, which are many.
        own = self.function.span
        return [(found, ()) for found in self.module.operations(names) if own.start <= found.span.start < own.end]

    @cached_property
    def arguments(self) -> Mapping[str, int]:
        """The numbers of the function's arguments, by name."""
        return {argument.name: index for index, argument in enumerate(self.function.arguments)}

    @property
    def outputs(self) -> Sequence[str]:
        """Names for the function's outputs, which have none in the text."""
        return [f"result {number}" for number in range(len(self.function.results))]

    @cached_property
    def _starts(self) -> list[int]:
        return [row.start for row in self.rows]

    def row_at(self, offset: int) -> int | None:
        """The number of the innermost row whose operation holds an offset."""
        index = bisect_right(self._starts, offset) - 1
        while index >= 0 and offset >= self.rows[index].own[-1].end:
            index -= 1
        return index if index >= 0 else None

    def operation(self, row: int) -> Operation:
        """The operation of a row."""
        return self.noted(("operation", row), lambda: self.records.operation(self.rows[row]))

    @cached_property
    def _names(self) -> Mapping[str, Mapping[int, Node]]:
        """The values of each name by the region that it is known in; -1 for the function's own."""
        found: dict[str, dict[int, Node]] = {}
        with collection_paused():
            for name, index in self.arguments.items():
                found.setdefault(name, {}).setdefault(-1, Node("argument", -1, index))
            for number, row in enumerate(self.rows):
                for index, name in enumerate(row.results):
                    found.setdefault(name, {}).setdefault(row.regions[-1], Node("result", number, index))
                for region, block in enumerate(self._blocks(number)):
                    for index, name in enumerate(block):
                        # What a loop carries is one value: its result, and the argument of its condition and body.
                        carried = Node("result", number, index)
                        inside = carried if row.name.endswith("while") else Node("block", number, index, region=region)
                        found.setdefault(name, {}).setdefault(row.inside[region], inside)
        return found

    def node(self, name: str, row: int) -> Node | None:
        """Return the node of a name in the operation of a row."""
        known = self._names.get(name, {})
        return next((known[region] for region in (*reversed(self.rows[row].regions), -1) if region in known), None)

    @cached_property
    def _owners(self) -> Mapping[int, tuple[int, bool]]:
        """For each region the row that it is in, and whether it is the last one there."""
        return {
            region: (number, region == row.inside[-1])
            for number, row in enumerate(self.rows)
            if row.inside
            for region in row.inside
        }

    def around(self, row: int) -> tuple[int, ...]:
        """The operations whose regions an operation is in."""
        return tuple([self._owners[each][0] for each in self.rows[row].regions if each in self._owners])

    def end_of(self, row: int) -> int | None:
        """The operation whose region ends with a row, with what is returned there; None for any other row."""
        found = self.rows[row]
        if found.results or not found.regions or self._last_in.get(found.regions[-1]) != row:
            return None
        return self._owners.get(found.regions[-1], (None, False))[0]

    def carried_by(self, row: int) -> int | None:
        """The loop that goes on with what is returned in a row; None for any other row."""
        owner = self.end_of(row)
        is_last = owner is not None and self._owners[self.rows[row].regions[-1]][1]
        return owner if is_last and owner is not None and self.rows[owner].name.endswith("while") else None

    def _blocks(self, row: int) -> list[tuple[str, ...]]:
        if not self.rows[row].inside:
            return []
        try:
            return [
                tuple(argument.name for argument in region.blocks[0].arguments) if region.blocks else ()
                for region in self.operation(row).regions
            ]
        except ParseError:
            return []

    def operands(self, row: int) -> tuple[Node | None, ...]:
        """The operands of an operation."""
        return self._operands[row]

    @cached_property
    def _operands(self) -> Sequence[tuple[Node | None, ...]]:
        with collection_paused():
            return [
                tuple([self.node(name, number) for name in self.records.operands(row)])
                for number, row in enumerate(self.rows)
            ]

    def results(self, row: int) -> tuple[Node, ...]:
        """The results of an operation."""
        return tuple([Node("result", row, index) for index in range(len(self.rows[row].results))])

    def definition(self, node: Node) -> int | None:
        """The operation whose result a value is; None for an argument, of the function or of a block."""
        return node.row if node.kind == "result" else None

    @cached_property
    def returned(self) -> tuple[Node | None, ...]:
        """The values that the function returns."""
        last = len(self.rows) - 1
        return self.operands(last) if last >= 0 and not self.rows[last].results else ()

    def users(self, node: Node) -> Sequence[int]:
        """The operations that a value goes into, in text order."""
        return self._users.get(node, ())

    def users_of(self, nodes: Collection[Node]) -> Mapping[Node, Sequence[int]]:
        """The same for each of some values."""
        return {node: self.users(node) for node in nodes}

    @cached_property
    def _users(self) -> Mapping[Node, Sequence[int]]:
        found: dict[Node, list[int]] = {}
        with collection_paused():
            for row, operands in enumerate(self._operands):
                for node in operands if len(operands) < 2 else dict.fromkeys(operands):
                    if node is not None:
                        found.setdefault(node, []).append(row)
        return found

    def ends(self, row: int) -> tuple[int, ...]:
        """The rows that end the regions of an operation, with what these return."""
        return tuple(self._last_in[region] for region in self.rows[row].inside if region in self._last_in)

    @cached_property
    def _last_in(self) -> Mapping[int, int]:
        return {row.regions[-1]: number for number, row in enumerate(self.rows)}


@derived
def dataflow_of(stage: ParsedStage) -> Dataflow | None:
    """The dataflow of the function that a module of MLIR starts with; None if it has none."""
    module = stage.mlir
    if module is None:
        return None
    function = module.function("main") or next(iter(module.functions), None)
    return None if function is None else Dataflow(module, function)
