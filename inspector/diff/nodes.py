"""Nodes by which texts are compared: operations of a graph, in any language."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from ...parsers.errors import readable
from ...parsers.hlo import Instruction
from ...parsers.mlir import Operation
from ...parsers.record import Record
from ...parsers.source import Span
from ..ir.def_use import DefUse, near

O = TypeVar("O", Instruction, Operation)  # noqa: E741


@dataclass(frozen=True, slots=True)
class Node:
    """An operation. `name` is that of its result, `operands` those of what it takes, as far as they have names.

    `does` is what it does to whatever it takes: no names, numbers and positions in it; `attributes` are the parts of
    that by name. `line` is what one reads.
    """

    name: str
    opcode: str
    operands: tuple[str, ...]
    span: Span
    type: str
    does: Hashable = field(repr=False)
    attributes: Mapping[str, str] = field(hash=False, compare=False, repr=False)
    line: str = field(compare=False, repr=False)


class Graph(Record, Generic[O], frozen=True, eq=False):
    """The operations that may use each other's results, by the names of these: of one computation, one block.

    Nodes are made when they are asked for; what cannot be read is none.
    """

    operations: Sequence[O]
    uses: DefUse[str, O]
    read: Callable[[O], Node]
    _nodes: dict[int, Node | None] = msgspec.field(default_factory=dict)

    def at(self, offset: int) -> Node | None:
        """The operation whose text holds that byte."""
        operation = self._at(offset)
        return None if operation is None else self._node(operation)

    def near(self, start: Node, steps: int, most: int) -> list[Node]:
        """Return the nodes within a few steps, in text order."""
        operation = self._at(start.span.start)
        found = [] if operation is None else near(self.uses, operation, steps, most)
        return in_text_order([node for each in found if (node := self._node(each)) is not None])

    def _at(self, offset: int) -> O | None:
        place = bisect_right(self.operations, offset, key=lambda operation: operation.span.start) - 1
        is_inside = place >= 0 and offset < self.operations[place].span.end
        return self.operations[place] if is_inside else None

    def _node(self, operation: O) -> Node | None:
        place = operation.span.start
        if place not in self._nodes:
            self._nodes[place] = readable(lambda: self.read(operation))
        return self._nodes[place]


AnyGraph = Graph[Instruction] | Graph[Operation]


def in_text_order(nodes: Collection[Node]) -> list[Node]:
    """Sort by position."""
    return sorted(nodes, key=lambda node: node.span.start)
