"""The ways that axes took from one value to another, as Shardy recorded them.

Shardy moves axes between an operation's operands and results, and, where an operation has regions, along data-flow
edges: each has sources and a target.

Source: shardy/dialect/sdy/ir/data_flow_utils.cc and shardy/dialect/sdy/ir/op_interface.td.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from ...parsers.errors import readable
from ...parsers.hlo.fields import number as number_of
from ...parsers.mlir import Parameter, PropagationStep, ValueRef
from ...parsers.mlir.lists import entries
from ...parsers.mlir.sdy_parser import parse_propagation
from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ..dataflow.mlir import Dataflow, Node
from ..ir.derived import derived

EDGES = b"shardscope."
"""Prefix of the attributes with edges of the data flow: see `capture/worker/provenance.py`."""


class Move(Record, frozen=True):
    """At a step of the propagation an axis went from one value of an operation to others.

    `row` is the operation's, or -1 where a function's result takes what is returned.
    """

    step: int
    axis: AxisRef
    source: Node
    targets: tuple[Node, ...]
    row: int


class Moves:
    """The moves of a propagation. Those of an operation are read on first use."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self._known: dict[int, tuple[Move, ...]] = {}

    def to(self, node: Node) -> Iterator[Move]:
        """The moves that brought an axis to a value."""
        rows = {node.row} if node.kind in ("result", "block") else set()
        for row in self.flow.users(node):
            owner = self.flow.end_of(row)
            rows.add(row if owner is None else owner)
        if node.kind == "output" or node in self._returned:
            rows.add(-1)
        for row in sorted(rows):
            yield from (move for move in self.at(row) if node in move.targets)

    @cached_property
    def all(self) -> tuple[Move, ...]:
        """Every move of the propagation, in its order."""
        return tuple(sorted((move for row in (-1, *self._moving) for move in self.at(row)), key=lambda move: move.step))

    def at(self, row: int) -> tuple[Move, ...]:
        """The moves at an operation; at the function's end for -1."""
        if row not in self._known:
            self._known[row] = tuple(self._of_results() if row < 0 else self._of_operation(row))
        return self._known[row]

    def _of_results(self) -> Iterator[Move]:
        for index, result in enumerate(self.flow.function.results):
            node = Node("output", -1, index)
            given = self.flow.returned[index] if index < len(self.flow.returned) else None
            yield from _resolved(_propagation(result), (given,), (node,), -1)

    def _of_operation(self, row: int) -> Iterator[Move]:
        found = self.flow.rows[row]
        if row not in self._moving:
            return
        steps = self.flow.records.propagation(found)
        if steps:
            results = self.flow.results(row)
            yield from _resolved(steps, self.flow.operands(row), results, row)
        attributes = self.flow.records.attributes(found) if self.flow.records.has(found, EDGES) else {}
        for side in ("result", "block_arg"):
            written = attributes.get(f"shardscope.{side}_propagation_edges")
            if written:
                for number, edge in _entries(written).items():
                    yield from self._along_edge(row, side, number_of(re.sub(r"\D", "", number)) or 0, edge)

    def _along_edge(self, row: int, side: str, index: int, written: str) -> Iterator[Move]:
        steps = readable(lambda: parse_propagation(written))
        if steps:
            sources, target = self.edge(row, side, index)
            yield from _resolved(steps, sources, (target,), row)

    def edge(self, row: int, side: str, index: int) -> tuple[tuple[Node | None, ...], Node]:
        """The sources and the target of one of the data-flow edges of an operation."""
        name = self.flow.rows[row].name
        operands = self.flow.operands(row)
        given = (operands[index] if index < len(operands) else None,)
        if side == "block_arg":
            return given, Node("block", row, index, region=0)
        returned = [self.flow.operands(end) for end in self.flow.ends(row)]
        ends = tuple(each[index] if index < len(each) else None for each in returned)
        owner = Node("result", row, index)
        if name.endswith("while"):
            return (*given, *ends[-1:]), owner
        if name.endswith("optimization_barrier"):
            return given, owner
        return ends, owner

    @cached_property
    def _returned(self) -> frozenset[Node | None]:
        return frozenset(self.flow.returned)

    @cached_property
    def _moving(self) -> Mapping[int, None]:
        data, found = self.flow.text.source.data, self.flow.function.span
        rows: dict[int, None] = {}
        place = data.find(b"propagation_edges", found.start, found.end)
        while place >= 0:
            row = self.flow.row_at(place)
            if row is not None:
                rows[row] = None
            place = data.find(b"propagation_edges", place + 1, found.end)
        return rows


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
                yield Move(step.index, edge.axis, source, targets=targets, row=row)


@derived
def moves_of(flow: Dataflow) -> Moves:
    """The moves between the values of a dataflow."""
    return Moves(flow)


def _propagation(result: Parameter) -> tuple[PropagationStep, ...]:
    return readable(lambda: result.annotations.propagation) or ()


def _entries(written: str) -> Mapping[str, str]:
    return readable(lambda: entries(written)) or {}
