"""What texts are compared by: operations as nodes of a graph, whichever language they are written in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field

from ...parsers.source import Span
from ..ir.def_use import near


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


class Graph(ABC):
    """The operations that may use each other's results, by the names of these: of one computation, one block."""

    @abstractmethod
    def at(self, offset: int) -> Node | None:
        """The operation whose text holds that byte."""

    @abstractmethod
    def definition(self, name: str) -> Node | None:
        """The operation of that name; None for what is none of these, as a block's argument."""

    @abstractmethod
    def users_of(self, names: Collection[str]) -> Mapping[str, tuple[Node, ...]]:
        """For each name the operations that take what has it, in text order."""

    def operands(self, node: Node) -> tuple[str, ...]:
        """The names of what an operation takes."""
        return node.operands

    def results(self, node: Node) -> tuple[str]:
        """The name of an operation, which stands for its results."""
        return (node.name,)

    def near(self, start: Node, steps: int, most: int) -> list[Node]:
        """What is a few steps away, in text order."""
        return in_text_order(near(self, start, steps, most))


def in_text_order(nodes: Collection[Node]) -> list[Node]:
    """By where they stand."""
    return sorted(nodes, key=lambda node: node.span.start)
