"""What texts are compared by: operations as nodes of a graph, whichever language they are written in."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ...parsers.source import Span


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


class Graph(Protocol):
    """The operations that may use each other's results: of one computation, one block."""

    def at(self, offset: int) -> Node | None:
        """The operation whose text holds that byte."""

    def node(self, name: str) -> Node | None:
        """The operation of that name; None for what is none of these, as a block's argument."""

    def users(self, names: Collection[str]) -> Mapping[str, tuple[Node, ...]]:
        """For each name the operations that take what has it, in text order."""


def near(graph: Graph, start: Node, steps: int, most: int) -> list[Node]:
    """Operands of operands, users of users, and the operands of those that are a step away; in text order."""
    found, edge = {start.name: start}, [start]
    for _ in range(steps):
        if len(found) >= most:
            break
        used = graph.users([each.name for each in edge])
        reached = [
            *filter(None, (graph.node(name) for each in edge for name in each.operands)),
            *(user for each in edge for user in used[each.name]),
        ]
        edge = []
        for each in reached:
            if each.name not in found and len(found) < most:
                found[each.name] = each
                edge.append(each)
    return in_text_order(found.values())


def in_text_order(nodes: Collection[Node]) -> list[Node]:
    """By where they stand."""
    return sorted(nodes, key=lambda node: node.span.start)
