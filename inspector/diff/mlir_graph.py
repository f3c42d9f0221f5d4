"""The operations of a block of StableHLO as nodes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property

from ...parsers.errors import ParseError
from ...parsers.mlir import Block, MlirModule, Operation
from ..ir import mlir_types
from .nodes import Graph, Node

UNREAD = frozenset(("channel_handle", "mhlo.frontend_attributes", "use_global_device_ids"))
"""Attributes that a line is shown without: they number, or say how the backend goes about it."""

_NAME = re.compile(rb"%[\w$.\-]++")


class MlirGraph(Graph):
    """One block. A value that is used inside an operation's regions is used by that operation."""

    def __init__(self, block: Block) -> None:
        self._operations = block.operations
        self._starts = [operation.span.start for operation in self._operations]
        self._nodes: dict[int, Node | None] = {}

    def at(self, offset: int) -> Node | None:
        """The operation whose text holds that byte."""
        number = bisect_right(self._starts, offset) - 1
        inside = number >= 0 and offset < self._operations[number].span.end
        return self._of(number) if inside else None

    def definition(self, name: str) -> Node | None:
        """The operation with a result of that name."""
        number = self._made.get(name)
        return None if number is None else self._of(number)

    def users_of(self, names: Collection[str]) -> Mapping[str, tuple[Node, ...]]:
        """For each name the operations that take what has it."""
        return {name: tuple(filter(None, map(self._of, self._used.get(name, ())))) for name in names}

    @cached_property
    def _made(self) -> dict[str, int]:
        return {name: number for number, each in enumerate(self._operations) if (name := _name(each))}

    @cached_property
    def _used(self) -> dict[str, list[int]]:
        """The numbers of the operations in whose text a name stands, less the one that makes it."""
        found: dict[str, list[int]] = {}
        for number, operation in enumerate(self._operations):
            text = operation.text.source.data
            own = _name(operation)
            for name in {match[0].decode() for match in _NAME.finditer(text, operation.span.start, operation.span.end)}:
                if name != own:
                    found.setdefault(name, []).append(number)
        return found

    def _of(self, number: int) -> Node | None:
        if number not in self._nodes:
            try:
                self._nodes[number] = _node(self._operations[number])
            except ParseError:
                self._nodes[number] = None
        return self._nodes[number]


def graph_around(module: MlirModule, offset: int) -> MlirGraph | None:
    """The block whose operation stands there: the innermost one."""
    operation = module.operation_at(offset)
    around = None if operation is None else operation.parent
    if operation is None or around is None:
        return None
    blocks = (block for region in around.regions for block in region.blocks)
    return next((graph for graph in map(MlirGraph, blocks) if graph.at(operation.span.start) is not None), None)


def _name(operation: Operation) -> str:
    """That of all its results; empty for what has none."""
    return _whole(operation.results[0]) if operation.results else ""


def _whole(name: str) -> str:
    """`%3` of `%3#1`."""
    return name.partition("#")[0]


def _node(operation: Operation) -> Node:
    attributes = {key: value for key, value in operation.attributes.items() if key not in UNREAD}
    operands = tuple(_whole(name) for name in operation.operands)
    # What has no result, as a return, is known by where it stands.
    name = _name(operation) or f"at {operation.span.start}"
    types = ", ".join(map(mlir_types.short, operation.result_types))
    inside = Counter(each.name for each in operation.walk() if each is not operation)
    does = (operation.name, types, tuple(sorted(attributes.items())), tuple(sorted(inside.items())))
    told = "".join(f", {key} = {value}" for key, value in attributes.items())
    line = f"{name if name[0] == '%' else ''} = {operation.name}({', '.join(operation.operands)}){told} : {types}"
    return Node(name, operation.name, operands, operation.span, types, does, attributes, line.removeprefix(" = "))
