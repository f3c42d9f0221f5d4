"""The operations of a block of StableHLO as nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from ...parsers.errors import readable
from ...parsers.mlir import Block, MlirModule, Operation
from ..ir.types import array_type
from ..report.changes import Node
from .nodes import Graph

UNREAD = frozenset(("channel_handle", "mhlo.frontend_attributes", "use_global_device_ids"))
"""Attributes that a line is shown without: they number, or say how the backend goes about it."""

_NAME = re.compile(rb"%[\w$.\-]++")


def graph_around(module: MlirModule, offset: int) -> Graph[Operation] | None:
    """The block whose operation stands there: the innermost one."""
    operation = module.operation_at(offset)
    around = None if operation is None else operation.parent
    if operation is None or around is None:
        return None
    blocks = (block for region in around.regions for block in region.blocks)
    graphs = (Graph(uses.operations, uses, _node) for uses in map(BlockUses, blocks))
    return next((graph for graph in graphs if graph.at(operation.span.start) is not None), None)


class BlockUses:
    """The uses in one block. A value that is used inside an operation's regions is used by that operation."""

    def __init__(self, block: Block) -> None:
        self.operations = block.operations

    def definition(self, name: str) -> Operation | None:
        """The operation of that name; None for a block's argument."""
        return self._made.get(name)

    def operands(self, operation: Operation) -> tuple[str, ...]:
        """The names of what an operation takes; none of one that cannot be read."""
        return tuple(map(_whole, readable(lambda: operation.operands) or ()))

    def results(self, operation: Operation) -> tuple[str, ...]:
        """The name of an operation, which stands for its results."""
        return tuple(filter(None, [_name(operation)]))

    def users_of(self, names: Collection[str]) -> Mapping[str, Sequence[Operation]]:
        """For each name the operations in whose text it stands, less the one that makes it."""
        return {name: self._used.get(name, ()) for name in names}

    @cached_property
    def _made(self) -> Mapping[str, Operation]:
        return {name: each for each in self.operations if (name := _name(each))}

    @cached_property
    def _used(self) -> Mapping[str, Sequence[Operation]]:
        found: dict[str, list[Operation]] = {}
        for operation in self.operations:
            text = operation.text.source.data
            own = _name(operation)
            for name in {match[0].decode() for match in _NAME.finditer(text, operation.span.start, operation.span.end)}:
                if name != own:
                    found.setdefault(name, []).append(operation)
        return found


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
    types = ", ".join(map(str, map(array_type, operation.result_types)))
    inside = Counter(each.name for each in operation.walk() if each is not operation)
    does = (operation.name, types, tuple(sorted(attributes.items())), tuple(sorted(inside.items())))
    printed = "".join(f", {key} = {value}" for key, value in attributes.items())
    line = f"{name if name[0] == '%' else ''} = {operation.name}({', '.join(operation.operands)}){printed} : {types}"
    return Node(name, operation.name, operands, operation.span, types, does, attributes, line.removeprefix(" = "))
