"""Where shardings met that do not go together: operations whose values are cut differently along one dimension.

Propagation leaves such values as they are, and the partitioner communicates. What the result has has won.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ...parsers.errors import ParseError
from ...parsers.mesh_syntax import AxisRef
from ...parsers.source import Span
from ..capture.model import Capture
from ..report import SourcePlace
from .dataflow import Dataflow, Node
from .explained import Why, why_axis, wording_of
from .recorded import sharding_at
from .table import propagated


@dataclass(frozen=True, slots=True)
class Side:
    """A value of the operation, the dimension in words, the axes that cut it, and why.

    `elsewhere` is why axes that others have there cut another dimension of this value: no axis can cut two.
    """

    value: str
    axes: tuple[str, ...]
    why: tuple[Why, ...]
    elsewhere: tuple[Why, ...] = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    """Values of an operation are cut along different axes in dimensions that belong together: a `factor` of `rule`.

    `won` is how the operation's results have it, or, for a dimension that it reduces, the operand with most axes.
    """

    operation: str
    rule: str
    factor: str
    place: SourcePlace
    span: Span
    won: Side
    lost: tuple[Side, ...]


def conflicts(capture: Capture) -> tuple[Conflict, ...]:
    """All of them, in text order."""
    _, flow = propagated(capture)
    return () if flow is None else _conflicts(flow)


@lru_cache(maxsize=4)
def _conflicts(flow: Dataflow) -> tuple[Conflict, ...]:
    return tuple(conflict for row in range(len(flow.rows)) for conflict in _at(flow, row))


def _at(flow: Dataflow, row: int) -> Iterator[Conflict]:
    try:
        rule = flow.operation(row).annotations.sharding_rule
    except ParseError:
        return
    if rule is None or len(rule.operands) + len(rule.results) < 2:
        return
    manual = flow.rows[row].manual
    found: dict[str, list[tuple[Node, int, tuple[AxisRef, ...], bool]]] = {}
    results = tuple(Node("result", row, index) for index in range(len(flow.rows[row].results)))
    for nodes, tensors, is_result in ((flow.operands(row), rule.operands, False), (results, rule.results, True)):
        for node, tensor in zip(nodes, tensors, strict=False):
            sharding = None if node is None else sharding_at(flow, node)
            for dim, factors in enumerate(tensor):
                # Of a dimension of several factors it is not told which of them an axis cuts.
                if node is not None and len(factors) == 1:
                    axes = sharding.dims[dim].axes if sharding is not None and dim < len(sharding.dims) else ()
                    # What a shard_map takes in is one device's part: along its own axes nothing is cut any more.
                    axes = tuple(axis for axis in axes if axis.name not in manual)
                    found.setdefault(factors[0], []).append((node, dim, axes, is_result))
    wording = wording_of(flow)
    special = {*rule.need_replication, *rule.permutation}
    for factor, sides in found.items():
        if factor in special or len({axes for _, _, axes, _ in sides}) < 2:
            continue
        winner = max(sides, key=lambda side: (side[3], len(side[2])))
        lost = [side for side in sides if side[2] != winner[2]]
        every = dict.fromkeys(axis for _, _, axes, _ in sides for axis in axes)
        told = [
            Side(
                f"{wording.name(node)} dim {dim}",
                tuple(map(str, axes)),
                tuple(why_axis(flow, node, axis) for axis in axes),
                tuple(
                    why_axis(flow, node, axis)
                    for axis in every
                    if axis not in axes and wording.dim(node, axis) not in (None, dim)
                ),
            )
            for node, dim, axes, _ in (winner, *lost)
        ]
        name, place = wording.places.operation(row)
        yield Conflict(name, wording.rule(row) or "", factor, place, wording.span(row), told[0], tuple(told[1:]))
