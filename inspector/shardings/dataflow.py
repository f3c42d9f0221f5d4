"""The values of a propagated module: what each name means where it stands, and which operations use it.

What a loop carries is one value under several names; those of a branch's or a shard_map's region are values of their
own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from ...parsers.errors import ParseError
from ...parsers.mlir import Function, MlirModule, Operation
from ...parsers.mlir.value_rows import ValueRow, value_rows

NAME = re.compile(rb"%[\w$.\-]+(?:#\d+)?")
"""A value's name in an operation's text."""

Kind = Literal["argument", "result", "block", "output"]


@dataclass(frozen=True, slots=True)
class Node:
    """A value: number `index` of the arguments or outputs of the function, or of the results or the block arguments of
    the operation in row `row`. `region` is that of the block."""

    kind: Kind
    row: int
    index: int
    region: int = 0


class Dataflow:
    """The operations and values of a module's main function. Everything is read when asked for."""

    def __init__(self, module: MlirModule, function: Function) -> None:
        self.module = module
        self.text = function.operation.text
        self.function = function

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

    def users(self, node: Node) -> tuple[int, ...]:
        """The operations that a value goes into."""
        rows = {row for name in self.names(node) for row in self._uses.get(name, ())}
        return tuple(row for row in sorted(rows) if node in self.operands(row))

    @cached_property
    def _uses(self) -> Mapping[str, tuple[int, ...]]:
        """The rows by the names of values in their text."""
        found: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            for name in set(NAME.findall(self.text.source.data, row.own[0].start, row.own[0].end)):
                found.setdefault(name.decode(), []).append(number)
        return {name: tuple(rows) for name, rows in found.items()}

    def ends(self, row: int) -> tuple[int, ...]:
        """The rows that end the regions of an operation, with what these return."""
        return tuple(self._last_in[region] for region in self._regions_of.get(row, []) if region in self._last_in)

    @cached_property
    def _last_in(self) -> Mapping[int, int]:
        return {row.regions[-1]: number for number, row in enumerate(self.rows)}


@lru_cache(maxsize=8)
def dataflow_of(module: MlirModule) -> Dataflow | None:
    """The dataflow of the function that a module starts with; None if it has none."""
    function = module.function("main") or next(iter(module.functions), None)
    return None if function is None else Dataflow(module, function)
