"""What texts are compared by: operations as nodes of a graph, whichever language they are written in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ...parsers.errors import ParseError
from ...parsers.hlo import Instruction
from ...parsers.mlir import Operation
from ...parsers.source import Span
from ..ir.def_use import near

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


@dataclass(frozen=True, slots=True, eq=False)
class Graph(Generic[O]):
    """The operations that may use each other's results, by the names of these: of one computation, one block.

    `made` and `users` find the operation of a name, and those that take what some names stand for, in text order. Nodes
    are made when they are asked for; what cannot be read is none.
    """

    operations: Sequence[O]
    made: Callable[[str], O | None]
    users: Callable[[Collection[str]], Mapping[str, Sequence[O]]]
    read: Callable[[O], Node]
    _nodes: dict[int, Node | None] = field(default_factory=dict)

    def at(self, offset: int) -> Node | None:
        """The operation whose text holds that byte."""
        place = bisect_right(self.operations, offset, key=lambda operation: operation.span.start) - 1
        is_inside = place >= 0 and offset < self.operations[place].span.end
        return self._node(self.operations[place]) if is_inside else None

    def definition(self, name: str) -> Node | None:
        """The operation of that name; None for what is none of these, as a block's argument."""
        operation = self.made(name)
        return None if operation is None else self._node(operation)

    def users_of(self, names: Collection[str]) -> Mapping[str, tuple[Node, ...]]:
        """For each name the operations that take what has it, in text order."""
        found = self.users(names)
        return {name: tuple(filter(None, map(self._node, found.get(name, ())))) for name in names}

    def operands(self, node: Node) -> tuple[str, ...]:
        """The names of what an operation takes."""
        return node.operands

    def results(self, node: Node) -> tuple[str]:
        """The name of an operation, which stands for its results."""
        return (node.name,)

    def near(self, start: Node, steps: int, most: int) -> list[Node]:
        """What is a few steps away, in text order."""
        return in_text_order(near(self, start, steps, most))

    def _node(self, operation: O) -> Node | None:
        place = operation.span.start
        if place not in self._nodes:
            try:
                self._nodes[place] = self.read(operation)
            except ParseError:
                self._nodes[place] = None
        return self._nodes[place]


AnyGraph = Graph[Instruction] | Graph[Operation]


def in_text_order(nodes: Collection[Node]) -> list[Node]:
    """By where they stand."""
    return sorted(nodes, key=lambda node: node.span.start)
